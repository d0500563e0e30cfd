#include <memory>

#include "cli/command.h"
#include "cli/help_text.h"
#include "cli/report_options.h"
#include "cli/tolerance_options.h"
#include "session/align_logs.h"

namespace opguard {

void add_align(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<AlignOptions>();
  CLI::App* command =
      app.add_subcommand("align", "Compare two logs and name the first operator where they part");
  describe(*command, {"", {"opguard align run_a/log run_b/log --html report.html"}});
  CLI::Option* a = command->add_option("DIR_A", opt->dir_a, "Log folder of the first run");
  CLI::Option* b = command->add_option("DIR_B", opt->dir_b, "Log folder of the second run");
  CLI::Option* single = command
                            ->add_option("--single", opt->single,
                                         "Judge one run alone: what it recomputes must give what "
                                         "it gave first, what it reads must be what was "
                                         "left there")
                            ->type_name("DIR");
  single->excludes(a)->excludes(b);
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
  add_heuristic_option(*command, opt->report);
  command->callback([opt, command, &run] {
    run = [opt] { return align_logs(*opt); };
    if (!opt->single.empty()) return;
    if (opt->dir_a.empty()) throw CLI::RequiredError("DIR_A");
    if (opt->dir_b.empty()) throw CLI::RequiredError("DIR_B");
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
