#include <memory>

#include "cli/command.h"
#include "session/record_program.h"

namespace opguard {

void add_run(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<RecordOptions>();
  CLI::App* command =
      app.add_subcommand("run", "Run an instrumented program and record it: one log per process");
  command->add_option("--log", opt->log, "Folder for the logs; must not hold logs")->required();
  CLI::Option* deterministic =
      command->add_flag("--deterministic", opt->deterministic,
                        "Pin seeds, algorithms and collectives (docs/guide/determinism.md)");
  command->add_option("--seed", opt->seed, "Seed of --deterministic [0]")->needs(deterministic);
  command
      ->add_option(
          "--mode", opt->mode,
          "What is recorded: default, full, trusted, sdc or off (docs/design/runtime.md) [default]")
      ->check(CLI::IsMember({"default", "full", "trusted", "sdc", "off"}));
  command->add_option("--trusted", opt->trusted,
                      "Operators that mode trusted skips too: names, or -NAME for one to record, "
                      "separated by commas");
  // One value each, or the first would take all that follow.
  command
      ->add_option("--capture", opt->captures,
                   "Write a probe's tensors to the log folder: BOUNDARY[@OCCURRENCE][:SLOT], "
                   "repeatable (docs/formats/tensors.md)")
      ->expected(1)
      ->take_all();
  command
      ->add_option("--transplant", opt->transplants,
                   "Replace a value by a file's: BOUNDARY@OCCURRENCE:SLOT=FILE[#NAME], repeatable")
      ->expected(1)
      ->take_all();
  command->footer(
      "After --: the program, as you start it.\n"
      "Exits with the program's exit code; 2 if it could not be started or a transplant not done.");
  command->callback([opt, &run] {
    opt->command = program_words("run");
    run = [opt] { return record_program(*opt); };
  });
}

}  // namespace opguard
