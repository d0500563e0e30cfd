// session/align_logs.h: two logs in, a verdict out; or one log, held against itself.
#pragma once

#include <string>
#include <vector>

#include "session/examine.h"
#include "session/report_verdict.h"

namespace opguard {

// --tolerance: dir_a is the reference's log, dir_b the candidate's.
struct ToleranceRead {
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
