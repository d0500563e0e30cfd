// opguard infer: logs of good runs, by their folders alone or with their program's name.
//
//   opguard infer logs/a logs/b -o invariants.json
//   opguard infer --program bert=logs/a --program gpt=logs/b -o invariants.json
//
// A log without a name is of the program that its command and its folder tell. Counterexample: the
// same script in two folders. These are two programs, unless --program says that they are one.
#include "session/infer.h"

#include <memory>

#include "cli/command.h"
#include "cli/help_text.h"
#include "cli/report_options.h"

namespace opguard {

void add_infer(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<InferOptions>();
  CLI::App* command =
      app.add_subcommand("infer", "Find what good runs keep: invariants of training");
  describe(*command, {"", {"opguard infer logs/good1 logs/good2 -o invariants.json"}});
  command->add_option("LOG", opt->logs, "Folders of logs of good runs, recorded with --observe")
      ->check(CLI::ExistingDirectory);
  command->add_option("-o,--output", opt->out, "Write the invariants to this file")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("--program", opt->programs,
                   "The log in this folder is a run of this program; repeatable [by its command "
                   "and folder]")
      ->type_name("NAME=LOG")
      ->allow_extra_args(false);
  command
      ->add_option("--min-programs", opt->min_programs,
                   "A rule for all programs must hold in so many of them [3]")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--hypotheses", opt->hypotheses,
                   "Give these rules their evidence too: a file, or builtin")
      ->type_name("FILE");
  command->add_option("--explain", opt->explain, "Say what this rule rests on")->type_name("ID");
  command->add_option("--threads", opt->threads, "Read logs on so many threads [as there are]")
      ->type_name("N");
  add_talk_options(*command);
  command->callback([opt, &run] { run = [opt] { return infer(*opt); }; });
}

}  // namespace opguard
