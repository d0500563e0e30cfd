// session/plan_program.h: a program traced, and its plan written: `opguard preflight`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "preflight/preflight.h"
#include "session/leave_out.h"

namespace opguard {

struct PlanProgramOptions {
  std::string out, tree = ".", work, activities = "auto";
  std::vector<std::string> packages, command;
  SourceChoice sources;
  uint64_t steps = kUntilNothingNew;
};

// The exit code (support/exit_code.h).
int plan_program(const PlanProgramOptions& opt);

}  // namespace opguard
