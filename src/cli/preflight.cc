// opguard preflight: the program is run once under the tracer, and its plan is kept, to be
// committed.
//
//   opguard preflight -o plan.json -- python train.py --steps 3
//   opguard-instrument . --plan plan.json --apply
//
// Counterexample: `diff`, `noise` and `record` trace by themselves and take no plan.
#include <memory>

#include "cli/command.h"
#include "cli/help_text.h"
#include "cli/report_options.h"
#include "session/plan_program.h"

namespace opguard {

void add_preflight(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<PlanProgramOptions>();
  CLI::App* command = app.add_subcommand(
      "preflight", "Run a program under the tracer and write its plan: every operator boundary");
  describe(*command, {"-- CMD", {"opguard preflight -o plan.json -- python train.py --steps 3"}});
  command->add_option("-o,--output", opt->out, "The plan to write")->type_name("FILE")->required();
  command->add_option("--tree", opt->tree, "Folder of the program's source; CMD runs in it [.]")
      ->type_name("TREE");
  command->add_option("--with", opt->packages, "Count an installed package as source; repeatable")
      ->type_name("PKG")
      ->allow_extra_args(false);
  add_source_options(*command, opt->sources);
  command
      ->add_option("--steps", opt->steps,
                   "Trace only this many optimizer steps, 0: all [until nothing new comes]")
      ->type_name("N");
  command->add_option("--work", opt->work, "Keep the traces, in this folder's trace/")
      ->type_name("DIR");
  command
      ->add_option(
          "--activities", opt->activities,
          "See a device's activities by cupti, launches (intercepted), operators (none) [auto]")
      ->type_name("HOW")
      ->check(CLI::IsMember({"auto", "cupti", "launches", "operators"}));
  add_talk_options(*command);
  command->footer("After --: the program, as you start it.");
  command->callback([opt, command, &run] {
    opt->command = program_words(*command);
    run = [opt] { return plan_program(*opt); };
  });
}

}  // namespace opguard
