// opguard align: five questions about logs, told apart by their options.
//
//   align A B                            a verdict of two runs
//   align --single A                     of one run: recomputed forwards, overwritten memory
//   align A B --tolerance --noise N      within the rounding that N shows
//   align A B --part 3/8 -o p3.json      what some of the ranks tell; --merge joins such parts
//   align A B --on ray                   parts and their verdict at once, by workers
//
// What excludes what is CLI11's to tell, where it is plain (--single beside DIR_A). Where a reason
// is needed it is told in the callback, with what to do instead.
//
// Counterexample: a proof. A log does not say how its program is run, so --prove-runs demands both
// commands and is 0 if nobody asks; `diff` knows them.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/help_text.h"
#include "cli/part_options.h"
#include "cli/report_options.h"
#include "cli/tolerance_options.h"
#include "session/align_logs.h"
#include "session/align_on.h"
#include "session/align_part.h"
#include "support/url.h"

namespace opguard {

void add_align(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<AlignOptions>();
  auto parts = std::make_shared<PartOptions>();
  CLI::App* command =
      app.add_subcommand("align", "Compare two logs and name the first operator where they part");
  describe(*command, {"", {"opguard align run_a/log run_b/log --html report.html"}});
  CLI::Option* a = command->add_option("DIR_A", opt->dir_a,
                                       "Log folder of the first run; or s3://, gs://, hdfs:// "
                                       "(opguard help objectstorage)");
  CLI::Option* b = command->add_option("DIR_B", opt->dir_b, "Log folder of the second run");
  CLI::Option* single = command
                            ->add_option("--single", opt->single,
                                         "Judge one run alone: what it recomputes must give what "
                                         "it gave first, what it reads must be what was "
                                         "left there")
                            ->type_name("DIR");
  single->excludes(a)->excludes(b);
  CLI::Option* merge = add_part_options(*command, *parts, a, b, single);
  add_helper_python(*command, opt->report.python,
                    "Interpreter that has Ray, of --on, or that reaches object storage: with "
                    "pyarrow [python3]",
                    "--on and of logs in object storage", [opt, parts] {
                      const std::vector<std::string>& noise = opt->tolerance.noise;
                      return !parts->on.empty() || is_url(opt->single) || is_url(opt->dir_a) ||
                             is_url(opt->dir_b) || std::any_of(noise.begin(), noise.end(), is_url);
                    });
  add_examine_options(*command, opt->examine, 0);
  add_tolerance_options(*command, opt->tolerance);
  command
      ->add_option("--run-a", opt->run_a,
                   "Shell command that was recorded into DIR_A, for --prove-runs and --drill")
      ->type_name("CMD");
  command->add_option("--run-b", opt->run_b, "Shell command that was recorded into DIR_B")
      ->type_name("CMD");
  add_talk_options(*command);
  add_report_options(*command, opt->report);
  add_rule_options(*command, opt->report);
  add_read_option(*command, opt->report);
  add_heuristic_option(*command, opt->report);
  command->callback([opt, parts, merge, command, &run] {
    run = [opt, parts, merge] {
      parts->dir_a = opt->dir_a, parts->dir_b = opt->dir_b;
      parts->report = opt->report;
      if (merge->count() > 0) return merge_part_files(*parts);
      if (!parts->on.empty()) return align_on(*parts);
      return parts->part.empty() ? align_logs(*opt) : align_part(*parts);
    };
    if (!opt->single.empty() || merge->count() > 0) return;
    if (opt->dir_a.empty()) throw CLI::RequiredError("DIR_A");
    if (opt->dir_b.empty()) throw CLI::RequiredError("DIR_B");
    if ((!parts->part.empty() || !parts->on.empty()) && (opt->tolerance.on || opt->examine.any()))
      throw CLI::ValidationError(parts->on.empty() ? "--part" : "--on",
                                 "compares bit by bit, and proves and drills nothing: leave out "
                                 "--tolerance, --prove-runs and --drill");
    if (opt->tolerance.on && opt->tolerance.noise.empty())
      throw CLI::ValidationError("--tolerance",
                                 "nothing says what rounding can do: give --noise, a log of run a "
                                 "with --jitter");
    if (opt->tolerance.on && opt->examine.any())
      throw CLI::ValidationError("--tolerance",
                                 "proves and drills nothing yet: leave out "
                                 "--prove-runs and --drill");
    if (opt->tolerance.on) note_unused_by_tolerance(*command);
    if (opt->examine.any() && (opt->run_a.empty() || opt->run_b.empty()))
      throw CLI::ValidationError(
          "--prove-runs",
          "runs both programs again, and logs do not say how: give --run-a and --run-b, "
          "or use opguard diff, which has them");
  });
}

}  // namespace opguard
