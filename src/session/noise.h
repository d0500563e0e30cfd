// session/noise.h: one tree run several times: what differs by itself, and rules that hide it from
// later comparisons.
//
//   run 1, run 2       loader.copy_ leaves other padding in each
//   noise.rules        loader.copy_:q7k2:out0 -- why: uninitialised memory
//   run 1, run 3       a second pair; the same place is one rule
//
// Counterexample: noise that reaches the loss. A rule would hide the cause, and the runs would
// still part: it is told, and no rule is promised to help.
//
// The cost: a traced run, `runs` guarded ones, and the first of these aligned with each other one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "preflight/preflight.h"
#include "session/leave_out.h"
#include "session/report_verdict.h"

namespace opguard {

struct NoiseOptions {
  std::string tree, out;
  std::vector<std::string> packages;
  SourceChoice sources;
  uint32_t runs = 2;
  uint64_t steps = kUntilNothingNew;
  std::string work, templates;
  bool deterministic = false;
  uint64_t seed = 0;
  ReportOptions report;
  std::vector<std::string> command;
};

// The exit code (support/exit_code.h).
int noise(NoiseOptions opt);

}  // namespace opguard
