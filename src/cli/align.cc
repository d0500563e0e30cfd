// opguard align: two logs in, a verdict out.
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/verdict_steps.h"

namespace opguard {
namespace {

struct AlignOptions {
  std::string dir_a, dir_b;
  ReportOptions report;
};

}  // namespace

void add_align(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<AlignOptions>();
  CLI::App* command =
      app.add_subcommand("align", "Compare two logs and name the first operator where they part");
  command->add_option("DIR_A", opt->dir_a, "log folder of the first run")->required();
  command->add_option("DIR_B", opt->dir_b, "log folder of the second run")->required();
  add_report_options(*command, opt->report);
  command->callback([opt, &run] {
    // The preflight is not part of a log: what share of the work was instrumented is not known
    // here.
    run = [opt] { return conclude(opt->dir_a, opt->dir_b, Coverage{}, opt->report); };
  });
}

}  // namespace opguard
