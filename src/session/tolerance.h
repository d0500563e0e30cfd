// session/tolerance.h: the runs that `opguard diff --tolerance` makes in place of the guarded ones.
//
//   3/5  b in mode sketch            what each of its ranks has, with no knowledge of its layout
//        shapes                      that b's ranks hold: run_a/slices.txt
//   4/5  a in mode sketch            its tensors, and their pieces of those shapes
//        pads                        where b's ranks hold more than a has, b again: what lies in a
//                                    pad gets a sketch without it
//   5/5  a with jitter, --perturb    what rounding alone can do to each tensor
//
// Counterexample: b is not run with jitter. The reference says how much rounding may do; a
// candidate that is wrong might be noisy.
//
// The cost: two runs and --perturb more. What sketches cost: bench/sketch.py.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "llvm/Support/Error.h"
#include "record/record.h"
#include "session/report_verdict.h"
#include "session/side.h"

namespace opguard {

struct ToleranceRuns {
  bool on = false;
  uint32_t perturb = 1;  // jittered runs of a, at least 1
  uint64_t seed = 0;     // of the first of them, less 1
  bool isolate = false;  // a fault's followers are told from faults, by two further runs
  ToleranceOptions options;
  bool port = false;  // few operators of b are a's
};

// Runs `program` so that its logs are in `<work>/<folder>/log`.
using RecordSketched =
    std::function<llvm::Error(const GuardedProgram& program, const std::string& folder)>;

// Records b, then a as b's shapes want it, then the noise. A program that fails in any of these
// runs is an error.
llvm::Expected<ToleranceLogs> record_tolerance(const ToleranceRuns& runs, const GuardedProgram& a,
                                               const GuardedProgram& b,
                                               const RecordSketched& record_a,
                                               const RecordSketched& record_b);

}  // namespace opguard
