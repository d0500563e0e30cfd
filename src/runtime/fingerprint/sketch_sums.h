// runtime/fingerprint/sketch_sums.h: the inner loop of os1 over contiguous rows, in one version for
// each width of vector the processor may have.
#pragma once

#include <cstddef>
#include <cstdint>

#include "record/sketch.h"
#include "runtime/fingerprint/lane_sums.h"

namespace opguard {

// Sums of rows before they are rotated, one set for each rotation. A row is added where its lanes
// are, so consecutive rows do not wait for one another's sums to be stored.
struct RotatedSums {
  alignas(64) double lanes[kSketchNumbers][kSketchNumbers];  // by rotation; only of those in `used`
  uint64_t used = 0;                                         // bits

  __attribute__((always_inline)) double* of(unsigned rotation) {
    if ((used >> rotation & 1) == 0) {
      used |= uint64_t{1} << rotation;
      for (double& y : lanes[rotation]) y = 0;
    }
    return lanes[rotation];
  }
};

// Rows of one tensor, as they lie in memory and as they are numbered.
struct SketchRows {
  const char* data = nullptr;
  int64_t stride = 0;  // bytes from a row to the next
  uint64_t rows = 0;
  uint64_t count = 0;      // elements of a row, one after the other
  uint64_t first_row = 0;  // the number of the first row; the others follow
  uint64_t first_column = 0;
};

struct SketchLoops {
  void (*add)(const SketchRows& rows, FloatType type, RotatedSums& sums);
  // The same, slower: what is not finite is counted in `counts` and stands as zero.
  void (*add_finite)(const SketchRows& rows, FloatType type, RotatedSums& sums, Sketch& counts);
};

// The version that belongs to lane_sums().
const SketchLoops& sketch_loops();

}  // namespace opguard
