// session/align_logs.h: two logs in, a verdict out; or one log, held against itself.
//
//   opguard align A B                     two logs of `opguard run`, or of `diff --work`
//   opguard align --single A              recomputed forwards, memory that was overwritten
//   opguard align --tolerance A B --noise N
//   opguard align A B --prove-runs 3 --run-a CMD --run-b CMD
//
// Counterexample: a proof of logs alone. A log does not know how its program is run, so the
// commands are given, and the sources that they run carry the probes themselves.
#pragma once

#include <string>
#include <vector>

#include "session/examine.h"
#include "session/report_verdict.h"

namespace opguard {

// --tolerance: dir_a is the reference's log, dir_b the candidate's.
struct ToleranceRead {
  // Else the logs are compared bit for bit.
  bool on = false;
  std::vector<std::string> noise;  // logs of the reference with jitter
  ToleranceOptions options;
};

struct AlignOptions {
  std::string dir_a, dir_b, single;
  ToleranceRead tolerance;
  std::string run_a, run_b;  // shell commands, of --prove-runs and --drill
  ExamineOptions examine;
  ReportOptions report;
};

// The exit code (support/exit_code.h).
int align_logs(const AlignOptions& opt);

}  // namespace opguard
