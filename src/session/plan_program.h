// session/plan_program.h: a program traced, and its plan written: `opguard preflight`.
//
//   plan.json: N boundaries in 3 files
//   steps: 3 optimizer steps, 2 micro-batches each
//   coverage: ... % of N activities that compute belong to a boundary: forward ..., backward ...
//
// What is not covered is told with its largest part: a place where no probe can stand, or work
// below no source of the user's.
//
// Counterexample: a program that fails. Its plan would be of half of it, so none is written.
//
// The cost: one run of the program, slowed by the tracer (survey.h).
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
