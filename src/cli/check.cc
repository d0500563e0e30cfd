// opguard check: a folder of logs or a program, one of the two and not both.
//
//   opguard check logs/run7                  what was recorded with --observe
//   opguard check -- python train.py         traced, given probes, recorded, checked
//
// --steps is of the log that is looked at. A program that is run is recorded from its first step to
// its last.
#include "session/check.h"

#include <memory>

#include "cli/command.h"
#include "cli/help_text.h"
#include "cli/report_options.h"

namespace opguard {

void add_check(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<CheckOptions>();
  CLI::App* command = app.add_subcommand(
      "check", "Check one run, without another: does it keep what good runs keep?");
  describe(*command, {"[-- CMD]",
                      {"opguard check -- python train.py",
                       "opguard check logs/run7 --invariants invariants.json"}});
  command->add_option("LOG", opt->log, "Folder of logs, recorded with --observe")
      ->check(CLI::ExistingDirectory);
  command
      ->add_option("--invariants", opt->invariants,
                   "The rules: a file of opguard infer, or builtin; repeatable [builtin]")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command->add_option("--ignore", opt->ignored, "Leave out the rule of this id; repeatable")
      ->type_name("ID")
      ->allow_extra_args(false);
  command->add_option("--steps", opt->steps, "Of the log, look at steps M to N only")
      ->type_name("M..N");
  command->add_option("--tree", opt->tree, "Folder of the program's source; CMD runs in it [.]")
      ->type_name("DIR");
  command->add_option("--with", opt->packages, "Count an installed package as source; repeatable")
      ->type_name("PKG")
      ->allow_extra_args(false);
  add_source_options(*command, opt->sources);
  command->add_option("--json", opt->json, "Write the findings to this file as JSON")
      ->type_name("FILE");
  command->add_option("--html", opt->html, "As one page")->type_name("FILE");
  command->add_option("--sarif", opt->sarif, "As SARIF, for code review")->type_name("FILE");
  command->add_option("--work", opt->work, "Keep the run's logs in this new folder")
      ->type_name("DIR");
  command->add_option("--templates", opt->templates, "Take operator templates from this folder")
      ->type_name("DIR");
  add_talk_options(*command);
  command->footer(
      "After --: the program. It is recorded with probes, so that a finding names the operator.\n"
      "Exits with 0: nothing is violated; 1: something is; 2: it could not tell.");
  command->callback([opt, command, &run] {
    opt->command = program_words();
    if (opt->command.empty() == opt->log.empty())
      throw CLI::ValidationError("check", "give a folder of logs, or the program after --");
    run = [opt] { return check(*opt); };
  });
}

}  // namespace opguard
