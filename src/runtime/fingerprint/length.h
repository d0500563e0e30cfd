// runtime/fingerprint/length.h: og1's h of a tensor and its Euclidean length, in one pass.
//
//   measure([3, 4] of float32)    h as fingerprint() has it, length 5
//   one element is inf            length inf; a nan makes it nan
//   integers                      no length
//
// The length is summed in float64 by tasks that the shape alone tells, and added in their order. So
// threads and instruction sets do not change it.
//
// Counterexample: elements of float64 whose squares go beyond its range. Their length is found by
// a pass of its own, scaled.
//
// The cost: about that of fingerprint(), since rows are read twice while they are in the cache. A
// single long row and elements that are not neighbours are read in two passes.
#pragma once

#include <optional>

#include "runtime/fingerprint/fingerprint.h"

namespace opguard {

struct Measure {
  uint64_t h = 0;
  std::optional<double> length;
};

Measure measure(const Elements& elements, FloatType type, unsigned threads = 1);

}  // namespace opguard
