// opguard run: the user's own run, recorded. Most options belong to one of these, and say so by
// needs() and excludes():
//
//   what           --mode, --trusted, --capture, --transplant, --observe
//   when           --steps, --from-step, --every, --first-step; or --ring with --on
//   how much       --keep, or --upload with --spool
//   against what   --against with --on-parting; --check with --on-violation
//
// What CLI11 cannot tell, record_program() does before the program starts. So it finds a selection
// that cannot be parsed, or a window beside --against, which compares every step.
//
// Counterexample: probes. They are in the sources already (`opguard-instrument --apply`); this
// command puts none in.
#include <memory>

#include "cli/command.h"
#include "cli/help_text.h"
#include "cli/report_options.h"
#include "cli/run_options.h"
#include "session/record_program.h"
#include "support/url.h"

namespace opguard {

void add_run(CLI::App& app, Pipeline& run) {
  auto opt = std::make_shared<RecordOptions>();
  CLI::App* command =
      app.add_subcommand("run", "Run an instrumented program and record it: one log per process");
  describe(*command, {"-- CMD", {"opguard run --log run_a -- python train.py --steps 3"}});
  command->add_option("--log", opt->log, "Write the logs to this folder; it must not hold logs")
      ->type_name("DIR")
      ->required();
  command->add_flag("--simulate", opt->simulate,
                    "Compute the whole model on every parallel rank (opguard help simulate)");
  CLI::Option* deterministic =
      command->add_flag("--deterministic", opt->deterministic,
                        "Pin seeds, algorithms and collectives (opguard help determinism)");
  command->add_option("--seed", opt->seed, "Seed of --deterministic [0]")
      ->type_name("N")
      ->needs(deterministic);
  CLI::Option* mode =
      command
          ->add_option("--mode", opt->mode,
                       "Record default, full, sketch, trusted, sdc or off (opguard help runtime) "
                       "[default; with --against that of the earlier run]")
          ->type_name("MODE")
          ->check(CLI::IsMember({"default", "full", "sketch", "trusted", "sdc", "off"}));
  command
      ->add_option("--trusted", opt->trusted,
                   "Skip these operators too in mode trusted: names, or -NAME for one to record, "
                   "separated by commas")
      ->type_name("NAMES");
  command
      ->add_option("--slices", opt->slices,
                   "In mode sketch: sketch the pieces of these shapes too: of a file, or of what "
                   "the ranks of a log hold (opguard help tolerance)")
      ->type_name("FILE_OR_LOG")
      ->check(CLI::ExistingPath);
  command
      ->add_option("--jitter", opt->jitter,
                   "In mode sketch: move each result by up to the unit roundoff of its type")
      ->type_name("SEED");
  add_window_options(*command, *opt);
  add_helper_python(*command, opt->report.python,
                    "Interpreter that reaches object storage, of --upload and --against: with "
                    "pyarrow [python3]",
                    "logs in object storage",
                    [opt] { return !opt->upload.empty() || is_url(opt->against); });
  add_watching_options(*command, *opt);
  // One value each, or the first would take all that follow.
  command
      ->add_option("--capture", opt->captures,
                   "Write a probe's tensors to the log folder: BOUNDARY[@OCCURRENCE][:SLOT], "
                   "repeatable (opguard help tensors)")
      ->type_name("SELECTION")
      ->expected(1)
      ->take_all();
  command
      ->add_option("--transplant", opt->transplants,
                   "Replace a value by a file's: BOUNDARY@OCCURRENCE:SLOT=FILE[#NAME], repeatable")
      ->type_name("SELECTION=FILE")
      ->expected(1)
      ->take_all();
  add_talk_options(*command);
  command->footer(
      "After --: the program, as you start it.\n"
      "Exits with the program's exit code; 2 if it could not be started or a transplant not done.");
  command->callback([opt, command, mode, &run] {
    opt->command = program_words(*command);
    // A mode that is given counts; without one that of the earlier run does, since its records are
    // what this run is compared with.
    opt->mode_as_against = mode->empty();
    run = [opt] { return record_program(*opt); };
  });
}

}  // namespace opguard
