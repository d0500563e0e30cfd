// runtime/fingerprint/sketch.h: os1 (record/sketch.h) of a tensor in memory, and of a piece of one
// as if all else were zero.
//
//   sketch(x)                                 x of bfloat16 [16, 4096], whatever its strides
//   sketch(right, {[16, 4096], [0, 2048]})    what the right half adds to sketch(x)
//
// Counterexample: an integer tensor has no sketch. Its values are labels more often than amounts.
//
// The cost: one pass; bench/sketch.py has it beside torch.sum. With og1 in the same pass memory is
// read once. The result does not depend on the number of threads.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "record/sketch.h"
#include "runtime/fingerprint/fingerprint.h"
#include "runtime/fingerprint/lane_sums.h"
#include "runtime/fingerprint/row_walk.h"

namespace opguard {

// Where a piece lies: the shape of the whole, and for each dimension the index of the first element
// of the piece.
struct Frame {
  std::vector<int64_t> shape, first;
};

// A type that is none gives an empty sketch. A frame has as many dimensions as `elements`; nullptr:
// it is the whole. So many threads may work on it, the caller included.
Sketch sketch(const Elements& elements, FloatType type, const Frame* frame = nullptr,
              unsigned threads = 1);

// Both of a tensor in one pass over memory: what digest() and sketch() would say.
Digest digest_and_sketch(const Elements& elements, NumberType number, FloatType type,
                         unsigned threads, Sketch& sketch);

}  // namespace opguard
