// opguard noise: at least two runs of one tree, and rules for what differs between them.
//
//   opguard noise . -o noise.rules -- python train.py --steps 3
//   opguard diff good/ bad/ --ignore-file noise.rules -- python train.py --steps 3
//
// Its --ignore options are those of `diff`: what is known already is not found a second time.
#include <memory>

#include "cli/command.h"
#include "cli/help_text.h"
#include "cli/report_options.h"
#include "session/noise.h"

namespace opguard {

void add_noise(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<NoiseOptions>();
  CLI::App* command = app.add_subcommand(
      "noise", "Run one tree several times: name what differs by itself, and write rules for it");
  describe(*command, {"-- CMD", {"opguard noise . -o noise.rules -- python train.py --steps 3"}});
  command->add_option("TREE", opt->tree, "The source tree")->required();
  command->add_option("-o,--output", opt->out, "Write the rules to this file, for --ignore-file")
      ->type_name("FILE");
  command->add_option("--runs", opt->runs, "Run the program so often")
      ->type_name("N")
      ->check(CLI::Range(2u, 100u))
      ->capture_default_str();
  command->add_option("--with", opt->packages, "Count an installed package as source; repeatable")
      ->type_name("PKG")
      ->allow_extra_args(false);
  add_source_options(*command, opt->sources);
  command
      ->add_option("--steps", opt->steps,
                   "Trace only this many optimizer steps, 0: all [until nothing new comes]")
      ->type_name("N");
  command->add_option("--work", opt->work, "Keep logs, plan and outputs in this new folder")
      ->type_name("DIR");
  command->add_option("--templates", opt->templates, "Take operator templates from this folder")
      ->type_name("DIR");
  command->add_flag("--deterministic", opt->deterministic,
                    "Control seeds and kernels in all runs (opguard help determinism)");
  command->add_option("--seed", opt->seed, "Seed of --deterministic")->type_name("N");
  add_talk_options(*command);
  add_report_options(*command, opt->report);
  add_rule_options(*command, opt->report);
  command->footer("After --: the program, run in the tree.");
  command->callback([opt, command, &run] {
    opt->command = program_words(*command);
    run = [opt] { return noise(*opt); };
  });
}

}  // namespace opguard
