#include <memory>

#include "cli/command.h"
#include "session/plan_program.h"

namespace opguard {

void add_preflight(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<PlanProgramOptions>();
  CLI::App* command = app.add_subcommand(
      "preflight", "Run a program under the tracer and write its plan: every operator boundary");
  command->add_option("-o,--output", opt->out, "The plan to write")->required();
  command->add_option("--tree", opt->tree, "Folder of the program's source; CMD runs in it [.]");
  command
      ->add_option("--with", opt->packages, "Installed package that counts as source; repeatable")
      ->allow_extra_args(false);
  command->add_option("--steps", opt->steps,
                      "Stop tracing after N optimizer steps, 0: never [until nothing new comes]");
  command->add_option("--work", opt->work, "Keep the traces, in this folder's trace/");
  command
      ->add_option("--activities", opt->activities,
                   "A device's activities: cupti, launches (intercepted), operators (none) [auto]")
      ->check(CLI::IsMember({"auto", "cupti", "launches", "operators"}));
  command->add_flag("--quiet", opt->quiet, "Do not show the program's output");
  command->footer("After --: the program, as you start it.");
  command->callback([opt, &run] {
    opt->command = program_words("preflight");
    run = [opt] { return plan_program(*opt); };
  });
}

}  // namespace opguard
