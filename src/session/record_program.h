// session/record_program.h: an instrumented program run and recorded: `opguard run`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "session/report_verdict.h"

namespace opguard {

struct RecordOptions {
  std::string log, mode = "default", trusted;
  // Mode sketch (runtime/recorder/sketches.h): a file of shapes, "" for none; noise of rounding.
  std::string slices;
  std::optional<uint64_t> jitter;
  // Which steps (record/step_window.h): `steps`, or `from_step`, of which every `every`-th.
  std::string steps;
  std::optional<uint32_t> from_step;
  uint32_t every = 1;
  // Of a program that resumes: the number of its first step.
  uint32_t first_step = 0;
  // The last so many are kept in memory, and written when a watcher says so:
  // docs/guide/longjobs.md.
  uint32_t ring = 0;
  std::string ring_on = "nan,spike";
  std::string keep;  // of the events: "20GB,6h" (record/keep_text.h); "": all
  // A URL to which the logs are moved while the program runs (upload_run.h); "": they stay. So much
  // of each waits for it at most.
  std::string upload, spool = "4GB";
  std::vector<std::string> command, captures, transplants;
  bool deterministic = false;
  bool simulate = false;  // every rank unsharded: docs/design/simulate.md
  uint64_t seed = 0;
  // Training is observed too; looked at by these rules while the program runs (follow_run.h).
  bool observe = false;
  std::vector<std::string> check;
  std::string on_violation = "report", violation_command, json;
  // Each step is compared with the logs of an earlier run; "stop" ends it in the step in which it
  // parts, "report" says so.
  std::string against, on_parting = "stop";
  bool mode_as_against = false;  // in the mode of that run
  ReportOptions report{};  // of the verdict behind it
  bool hint = true;        // what to do next is said
};

// The exit code (support/exit_code.h).
int record_program(RecordOptions opt);

}  // namespace opguard
