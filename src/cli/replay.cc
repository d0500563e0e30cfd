// opguard replay: the command that makes the stretch again, or the logs of a replay made elsewhere;
// one of the two and not both.
//
//   opguard replay logs/job --first-step 1200 -- torchrun ... train.py --resume step1200.pt
//   opguard replay logs/job --replayed logs/elsewhere
//
// Mode, steps and seed have no option here: they are the job's, as its logs say.
#include "session/replay.h"

#include <memory>

#include "cli/command.h"
#include "cli/help_text.h"
#include "cli/report_options.h"

namespace opguard {

void add_replay(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<ReplayOptions>();
  CLI::App* command = app.add_subcommand(
      "replay",
      "Make a stretch of a recorded job again, and name the rank that computed otherwise");
  describe(*command,
           {"[-- CMD]",
            {"opguard replay logs/job --first-step 1200 -- torchrun --nproc-per-node 8 train.py "
             "--resume step1200.pt",
             "opguard replay logs/job --replayed logs/elsewhere"}});
  command->add_option("LOG", opt->log, "Folder of the job's logs")
      ->required()
      ->check(CLI::ExistingDirectory);
  command
      ->add_option("--first-step", opt->first_step,
                   "The command resumes: its first step is step N of the job [0]")
      ->type_name("N");
  command
      ->add_option("--replayed", opt->replayed,
                   "Compare with these logs of a replay, recorded by opguard run --first-step")
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory);
  command->add_option("--work", opt->keep, "Keep the replay's logs in this new folder")
      ->type_name("DIR");
  command->add_option("--json", opt->json, "Write the result to this file as JSON")
      ->type_name("FILE");
  add_talk_options(*command);
  command->footer(
      "After --: the program, from a checkpoint; its probes and mode are those of LOG.");
  command->callback([opt, command, &run] {
    opt->command = program_words();
    if (opt->command.empty() == opt->replayed.empty())
      throw CLI::ValidationError("replay", "give the program after --, or --replayed DIR");
    run = [opt] { return replay(*opt); };
  });
}

}  // namespace opguard
