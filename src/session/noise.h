// session/noise.h: one tree run several times: what differs by itself, and rules that hide it
// from later comparisons.
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
