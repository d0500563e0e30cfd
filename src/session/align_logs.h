// session/align_logs.h: two logs in, a verdict out; or one log, held against itself.
#pragma once

#include <string>

#include "session/examine.h"
#include "session/report_verdict.h"

namespace opguard {

struct AlignOptions {
  std::string dir_a, dir_b, single;
  std::string run_a, run_b;  // shell commands, of --prove-runs and --drill
  ExamineOptions examine;
  ReportOptions report;
};

// The exit code (support/exit_code.h).
int align_logs(const AlignOptions& opt);

}  // namespace opguard
