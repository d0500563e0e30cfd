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
#include "session/record_program.h"
#include "session/remote_logs.h"
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
  command
      ->add_option("--steps", opt->steps,
                   "Record steps M to N only, counted from 0 (opguard help longjobs)")
      ->type_name("M..N");
  command->add_option("--from-step", opt->from_step, "Record from step N on")->type_name("N");
  command->add_option("--every", opt->every, "Of these, record every K-th step only")
      ->type_name("K")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--first-step", opt->first_step,
                   "The program resumes: its first step is step N of the job [0]")
      ->type_name("N");
  // A ring writes its own folders when a watcher says so: --keep and --upload are of logs that are
  // written as they grow.
  CLI::Option* ring = command
                          ->add_option("--ring", opt->ring,
                                       "Keep the last K steps in memory, and write them when a "
                                       "watcher says so (opguard help longjobs)")
                          ->type_name("K")
                          ->check(CLI::PositiveNumber);
  command->add_option("--on", opt->ring_on, "Watchers: nan, spike, signal=USR1 [nan,spike]")
      ->type_name("NAMES")
      ->needs(ring);
  command
      ->add_option("--keep", opt->keep,
                   "Keep the end of each log alone: so large, as 20GB, or so long, as 6h, or both, "
                   "as 20GB,6h (opguard help longjobs)")
      ->type_name("LIMITS")
      ->excludes(ring);
  CLI::Option* upload =
      command
          ->add_option("--upload", opt->upload,
                       "Move the logs there while the program runs: s3://, gs://, hdfs:// (opguard "
                       "help objectstorage)")
          ->type_name("URL")
          ->excludes(ring)
          ->excludes("--keep")
          ->check([](const std::string& url) {
            return is_url(url) ? std::string() : "not a URL, as s3://bucket/run is: " + url;
          });
  command
      ->add_option("--spool", opt->spool,
                   "So much of each log waits for --upload at most; what comes then is lost, and "
                   "counted [4GB]")
      ->type_name("SIZE")
      ->needs(upload);
  CLI::Option* python =
      command
          ->add_option("--python", opt->report.python,
                       "Interpreter that reaches object storage, of --upload and --against: with "
                       "pyarrow [python3]")
          ->type_name("PYTHON");
  command->add_flag("--observe", opt->observe,
                    "Record what training does too: module calls, optimizers' steps, batches "
                    "(opguard help invariants)");
  CLI::Option* check =
      command
          ->add_option("--check", opt->check,
                       "Look at these invariants while the program runs: a file of opguard infer, "
                       "or builtin; repeatable (opguard help invariants)")
          ->type_name("FILE")
          ->allow_extra_args(false);
  command
      ->add_option("--on-violation", opt->on_violation,
                   "Where a rule is broken: report it and exit with 1, only warn, or stop the "
                   "program at the end of the step [report]")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"report", "warn", "stop"}))
      ->needs(check);
  command
      ->add_option("--violation-command", opt->violation_command,
                   "Where a rule is broken, run this shell command; the finding as JSON is its "
                   "standard input (opguard help invariants)")
      ->type_name("COMMAND")
      ->needs(check);
  CLI::Option* against =
      command
          ->add_option("--against", opt->against,
                       "Compare each step with the logs of an earlier run as it ends, and tell "
                       "what differs (opguard help steps); or s3://, gs://, hdfs://")
          ->type_name("DIR")
          ->check(folder_or_url_fault);
  command
      ->add_option("--on-parting", opt->on_parting,
                   "Where the runs part: stop the program at the end of the step, or report it "
                   "and go on [stop]")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"stop", "report"}))
      ->needs(against);
  command->add_option("--json", opt->json, "Write what --check finds to this file as JSON")
      ->type_name("FILE")
      ->needs(check);
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
  command->callback([opt, command, mode, python, &run] {
    if (python->count() > 0 && opt->upload.empty() && !is_url(opt->against))
      throw CLI::ValidationError("--python", "nothing needs it: it is of logs in object storage");
    opt->command = program_words(*command);
    // A mode that is given counts; without one that of the earlier run does, since its records are
    // what this run is compared with.
    opt->mode_as_against = mode->empty();
    run = [opt] { return record_program(*opt); };
  });
}

}  // namespace opguard
