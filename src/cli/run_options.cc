#include "cli/run_options.h"

#include <string>

#include "cli/command.h"
#include "support/url.h"

namespace opguard {

void add_window_options(CLI::App& command, RecordOptions& options) {
  command
      .add_option("--steps", options.steps,
                  "Record steps M to N only, counted from 0 (opguard help longjobs)")
      ->type_name("M..N");
  command.add_option("--from-step", options.from_step, "Record from step N on")->type_name("N");
  command.add_option("--every", options.every, "Of these, record every K-th step only")
      ->type_name("K")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--first-step", options.first_step,
                  "The program resumes: its first step is step N of the job [0]")
      ->type_name("N");
  // A ring writes its own folders when a watcher says so: --keep and --upload are of logs that are
  // written as they grow.
  CLI::Option* ring = command
                          .add_option("--ring", options.ring,
                                      "Keep the last K steps in memory, and write them when a "
                                      "watcher says so (opguard help longjobs)")
                          ->type_name("K")
                          ->check(CLI::PositiveNumber);
  command.add_option("--on", options.ring_on, "Watchers: nan, spike, signal=USR1 [nan,spike]")
      ->type_name("NAMES")
      ->needs(ring);
  command
      .add_option("--keep", options.keep,
                  "Keep the end of each log alone: so large, as 20GB, or so long, as 6h, or both, "
                  "as 20GB,6h (opguard help longjobs)")
      ->type_name("LIMITS")
      ->excludes(ring);
  CLI::Option* upload =
      command
          .add_option("--upload", options.upload,
                      "Move the logs there while the program runs: s3://, gs://, hdfs:// (opguard "
                      "help objectstorage)")
          ->type_name("URL")
          ->excludes(ring)
          ->excludes("--keep")
          ->check([](const std::string& url) {
            return is_url(url) ? std::string() : "not a URL, as s3://bucket/run is: " + url;
          });
  command
      .add_option("--spool", options.spool,
                  "So much of each log waits for --upload at most; what comes then is lost, and "
                  "counted [4GB]")
      ->type_name("SIZE")
      ->needs(upload);
}

void add_watching_options(CLI::App& command, RecordOptions& options) {
  command.add_flag("--observe", options.observe,
                   "Record what training does too: module calls, optimizers' steps, batches "
                   "(opguard help invariants)");
  CLI::Option* check =
      command
          .add_option("--check", options.check,
                      "Look at these invariants while the program runs: a file of opguard infer, "
                      "or builtin; repeatable (opguard help invariants)")
          ->type_name("FILE")
          ->allow_extra_args(false);
  command
      .add_option("--on-violation", options.on_violation,
                  "Where a rule is broken: report it and exit with 1, only warn, or stop the "
                  "program at the end of the step [report]")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"report", "warn", "stop"}))
      ->needs(check);
  command
      .add_option("--violation-command", options.violation_command,
                  "Where a rule is broken, run this shell command; the finding as JSON is its "
                  "standard input (opguard help invariants)")
      ->type_name("COMMAND")
      ->needs(check);
  command.add_option("--json", options.json, "Write what --check finds to this file as JSON")
      ->type_name("FILE")
      ->needs(check);
  CLI::Option* against =
      command
          .add_option("--against", options.against,
                      "Compare each step with the logs of an earlier run as it ends, and tell "
                      "what differs (opguard help steps); or s3://, gs://, hdfs://")
          ->type_name("DIR")
          ->check(folder_or_url_fault);
  command
      .add_option("--on-parting", options.on_parting,
                  "Where the runs part: stop the program at the end of the step, or report it "
                  "and go on [stop]")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"stop", "report"}))
      ->needs(against);
}

}  // namespace opguard
