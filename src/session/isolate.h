// session/isolate.h: the further runs of `opguard diff --tolerance --isolate`.
//
//   a again    what its operators left, and the candidate's have otherwise, is written
//              cut, a file for each value and rank: run_b/isolated/put
//   b again    with these values in place, in mode sketch, to the end of the step
//
// Counterexample: a verdict that is equivalent or inconclusive. Nothing is run again for it.
//
// The cost: two runs.
#pragma once

#include <vector>

#include "session/report_verdict.h"
#include "session/side.h"

namespace opguard {

// a, b: how the programs are run. They and `tolerance` outlive what is returned.
Isolate isolate_with(const GuardedProgram& a, const GuardedProgram& b,
                     const ToleranceOptions& tolerance);

}  // namespace opguard
