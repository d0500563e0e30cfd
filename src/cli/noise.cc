#include <memory>

#include "cli/command.h"
#include "cli/report_options.h"
#include "session/noise.h"

namespace opguard {

void add_noise(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<NoiseOptions>();
  CLI::App* command = app.add_subcommand(
      "noise", "Run one tree several times: name what differs by itself, and write rules for it");
  command->add_option("TREE", opt->tree, "the source tree")->required();
  command->add_option("-o,--output", opt->out, "write the rules to this file (for --ignore-file)");
  command->add_option("--runs", opt->runs, "how often the program runs")
      ->check(CLI::Range(2u, 100u))
      ->capture_default_str();
  command->add_option("--with", opt->packages, "an installed package that counts as source")
      ->allow_extra_args(false);
  command->add_option("--steps", opt->steps,
                      "trace only this many optimizer steps (0: all) [until nothing new comes]");
  command->add_option("--work", opt->work, "keep logs, plan and outputs in this new folder");
  command->add_option("--templates", opt->templates, "folder of operator templates");
  command->add_flag("--deterministic", opt->deterministic, "control seeds and kernels in all runs");
  command->add_option("--seed", opt->seed, "seed for --deterministic");
  add_report_options(*command, opt->report);
  add_rule_options(*command, opt->report);
  command->footer("After --: the program, run in the tree.");
  command->callback([opt, &run] {
    opt->command = program_words("noise");
    run = [opt] { return noise(*opt); };
  });
}

}  // namespace opguard
