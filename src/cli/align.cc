// opguard align: two logs in, a verdict out; or one log, held against itself.
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/verdict_steps.h"

namespace opguard {
namespace {

struct AlignOptions {
  std::string dir_a, dir_b, single;
  ReportOptions report;
};

}  // namespace

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
  add_report_options(*command, opt->report);
  command->callback([opt, &run] {
    if (!opt->single.empty()) {
      run = [opt] { return conclude_single(opt->single, opt->report); };
      return;
    }
    if (opt->dir_a.empty()) throw CLI::RequiredError("DIR_A");
    if (opt->dir_b.empty()) throw CLI::RequiredError("DIR_B");
    // The preflight is not part of a log: what share of the work was instrumented is not known
    // here.
    run = [opt] { return conclude(opt->dir_a, opt->dir_b, Coverage{}, opt->report); };
  });
}

}  // namespace opguard
