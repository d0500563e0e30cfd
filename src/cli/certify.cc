// opguard certify: the program may stand on the command line, or in the table [certify] of the
// settings file. So no `--` is demanded here; certify() says what is missing once it has read the
// file.
//
//   opguard certify                                        all checks of the repository
//   opguard certify replay                                 one of them, by its name
//   opguard certify --update canaries --reason "..."       what is there now is what is recorded
#include "session/certify.h"

#include <memory>

#include "cli/command.h"
#include "cli/help_text.h"
#include "cli/report_options.h"

namespace opguard {

void add_certify(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<CertifyOptions>();
  CLI::App* command = app.add_subcommand(
      "certify", "Run a repository's checks: default path, replay, resume, ranks, canaries");
  describe(*command, {"[-- CMD]",
                      {"opguard certify", "opguard certify --against main -- python tiny_train.py",
                       "opguard certify --update default-path --reason 'fused norm, #412'"}});
  command->add_option("NAME", opt->names, "Run these checks only");
  command
      ->add_option("--against", opt->against,
                   "Compare the tree with the commit at which it left this revision [main branch]")
      ->type_name("REV");
  command->add_option("--with", opt->packages, "Count an installed package as source; repeatable")
      ->type_name("PKG")
      ->allow_extra_args(false);
  add_source_options(*command, opt->sources);
  command->add_flag("--no-control", opt->no_control,
                    "Run without determinism control (opguard help determinism)");
  command->add_option("--seed", opt->seed, "Seed of determinism control [0]")->type_name("N");
  command
      ->add_option("--update", opt->update,
                   "Record what this check finds now, or accept its difference, in "
                   "opguard-certified.json")
      ->type_name("NAME");
  command->add_option("--reason", opt->reason, "Why: of --update")->type_name("WHY");
  command
      ->add_option("--until", opt->until,
                   "Last day on which the difference is accepted [in 90 days]")
      ->type_name("DATE");
  command->add_flag("--fresh", opt->fresh, "Run every check, also where nothing has changed");
  command->add_flag("--list", opt->list, "Name the checks and run nothing");
  command->add_option("--json", opt->json, "Write the results to this file as JSON")
      ->type_name("FILE");
  command->add_option("--junit", opt->junit, "As JUnit XML")->type_name("FILE");
  command->add_option("--sarif", opt->sarif, "As SARIF, what is not certified")->type_name("FILE");
  command->add_option("--md", opt->markdown, "As Markdown, for a pull request")->type_name("FILE");
  command->add_option("--store", opt->store, "Keep certificates in this folder [.opguard]")
      ->type_name("DIR");
  command->add_option("--work", opt->work, "Keep logs, plans and outputs in this new folder")
      ->type_name("DIR");
  command->add_option("--templates", opt->templates, "Take operator templates from this folder")
      ->type_name("DIR");
  add_talk_options(*command);
  command->footer("After --: the program of the checks [command of the table certify].");
  command->callback([opt, &run] {
    opt->command = program_words();
    run = [opt] { return certify(*opt); };
  });
}

}  // namespace opguard
