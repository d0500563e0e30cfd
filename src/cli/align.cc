#include <memory>

#include "cli/command.h"
#include "cli/report_options.h"
#include "session/align_logs.h"

namespace opguard {

void add_align(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<AlignOptions>();
  CLI::App* command =
      app.add_subcommand("align", "Compare two logs and name the first operator where they part");
  CLI::Option* a = command->add_option("DIR_A", opt->dir_a, "log folder of the first run");
  CLI::Option* b = command->add_option("DIR_B", opt->dir_b, "log folder of the second run");
  CLI::Option* single = command->add_option("--single", opt->single,
                                            "one run alone: what it recomputes must give what it "
                                            "gave first, what it reads must be what was "
                                            "left there");
  single->excludes(a)->excludes(b);
  add_examine_options(*command, opt->examine, 0);
  command->add_option("--run-a", opt->run_a,
                      "shell command that was recorded into DIR_A, for --prove-runs and --drill");
  command->add_option("--run-b", opt->run_b, "shell command that was recorded into DIR_B");
  add_report_options(*command, opt->report);
  add_rule_options(*command, opt->report);
  add_heuristic_option(*command, opt->report);
  command->callback([opt, &run] {
    run = [opt] { return align_logs(*opt); };
    if (!opt->single.empty()) return;
    if (opt->dir_a.empty()) throw CLI::RequiredError("DIR_A");
    if (opt->dir_b.empty()) throw CLI::RequiredError("DIR_B");
    if (opt->examine.any() && (opt->run_a.empty() || opt->run_b.empty()))
      throw CLI::ValidationError(
          "--prove-runs",
          "runs both programs again, and logs do not say how: give --run-a and --run-b, "
          "or use opguard diff, which has them");
  });
}

}  // namespace opguard
