// runtime/fingerprint/square_sums.h: the sum of the squares of elements that are neighbours, in one
// version for each width of vector the processor may have.
//
//   [3, 4] of float32    25, whatever the version: 16 sums side by side, added in order
//
// Counterexample: one sum would make each addition wait for the one before.
#pragma once

#include <cstdint>

#include "runtime/fingerprint/lane_sums.h"

namespace opguard {

using SquareLoop = double (*)(const char* data, uint64_t count, FloatType type);

}  // namespace opguard
