// runtime/fingerprint/sketch_sums.h: the inner loop of os1 over contiguous rows, in one version for
// each width of vector the processor may have.
#pragma once

#include <cstddef>
#include <cstdint>

#include "record/sketch.h"
#include "runtime/fingerprint/lane_sums.h"

namespace opguard {

// Twice as wide as a sketch, so that a rotated row is added in one piece: the halves are added when
// all rows are in.
using WideSums = double[2 * kSketchNumbers];

// Rows of one tensor, as they lie in memory and as they are numbered.
struct SketchRows {
  const char* data = nullptr;
  int64_t stride = 0;       // bytes from a row to the next
  uint64_t rows = 0;
  uint64_t count = 0;       // elements of a row, one after the other
  uint64_t first_row = 0;   // the number of the first row; the others follow
  uint64_t first_column = 0;
};

struct SketchLoops {
  // Adds rows to `sums`. False: an element was not finite, and `sums` is without meaning.
  bool (*add)(const SketchRows& rows, FloatType type, double* sums);
  // The same, slower: what is not finite is counted in `counts` and stands as zero.
  void (*add_finite)(const SketchRows& rows, FloatType type, double* sums, Sketch& counts);
};

// The version that belongs to lane_sums().
const SketchLoops& sketch_loops();

}  // namespace opguard
