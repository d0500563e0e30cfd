// opguard invariants FILE list|show|mute|merge: the one command with commands of its own.
//
//   opguard invariants builtin show b23a
//   opguard invariants rules.json mute 3f9c --because 'own optimizer'
//
// Which of them was named is stored by its callback. The work is the outer command's, and runs
// behind the parse.
#include <memory>

#include "cli/command.h"
#include "cli/help_text.h"
#include "cli/report_options.h"
#include "session/edit_invariants.h"

namespace opguard {

void add_invariants(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<EditInvariantsOptions>();
  CLI::App* command =
      app.add_subcommand("invariants", "List, show, mute and merge the rules of a file");
  describe(*command, {"",
                      {"opguard invariants builtin list",
                       "opguard invariants rules.json mute 3f9c --because 'own optimizer'"}});
  command->add_option("FILE", opt->file, "A file of opguard infer, or builtin")->required();
  command->require_subcommand(1);
  CLI::App* list = command->add_subcommand("list", "A line for each rule");
  CLI::App* show = command->add_subcommand("show", "All that is known of a rule");
  show->add_option("ID", opt->id, "Its id, or how it begins")->required();
  CLI::App* mute = command->add_subcommand("mute", "Leave a rule out from now on");
  mute->add_option("ID", opt->id, "Its id, or how it begins")->required();
  mute->add_option("--because", opt->because, "Why")->type_name("TEXT")->required();
  CLI::App* merge = command->add_subcommand("merge", "Put two files together");
  merge->add_option("OTHER", opt->other, "The other file")->required();
  merge->add_option("-o,--output", opt->out, "Write to this file")->type_name("FILE")->required();
  list->callback([opt] { opt->action = InvariantsAction::list; });
  show->callback([opt] { opt->action = InvariantsAction::show; });
  mute->callback([opt] { opt->action = InvariantsAction::mute; });
  merge->callback([opt] { opt->action = InvariantsAction::merge; });
  add_talk_options(*command);
  command->callback([opt, &run] { run = [opt] { return edit_invariants(*opt); }; });
}

}  // namespace opguard
