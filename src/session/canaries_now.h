// session/canaries_now.h: a run's numbers that a check of kind `canaries` compares, such as graph
// breaks, coverage and peak bytes.
//
// Counterexample: the time of a step. It differs from run to run, so no record of it would hold.
#pragma once

#include "certify/recorded_values.h"
#include "llvm/Support/Error.h"
#include "session/recorded_side.h"

namespace opguard {

// Of a side that was recorded. Error: its log cannot be read.
llvm::Expected<Canaries> canaries_of(const RecordedSide& side);

}  // namespace opguard
