// runtime/fingerprint/sketch_sums.h: the inner loop of os1 over contiguous rows, in one version for
// each width of vector the processor may have.
#pragma once

#include <cstddef>
#include <cstdint>

#include "record/sketch.h"
#include "runtime/fingerprint/lane_sums.h"

namespace opguard {

// Sums of rows, rotated by the unit of a vector. With 8 sets a row with rotation 19 is added to set
// 3 from lane 16 on. What goes beyond lane 63 comes round at the end.
//
// So a row's vectors are stored where those of another row lie, or beside them, never across.
// Across them each addition would wait for the one before to leave the processor. One set for each
// of the 64 rotations would take 32 KiB: to clear and to add up these is more than a small tensor.
template <typename Number, unsigned kCount>
struct RotatedSets {
  static constexpr unsigned kSets = kCount;
  alignas(64) Number lanes[kSets][2 * kSketchNumbers];  // only of those in `used`
  unsigned used = 0;                                    // bits

  __attribute__((always_inline)) Number* of(unsigned rotation) {
    const unsigned set = rotation % kSets;
    if ((used >> set & 1) == 0) {
      used |= 1u << set;
      for (Number& y : lanes[set]) y = 0;
    }
    return lanes[set] + (rotation - set);
  }
};

// Rows of types of two bytes, up to kFloatColumns long, are summed as float32 first, up to
// kFloatRows of them. They have 8 or 11 bits each, so next to nothing is lost, and half the work is
// saved.
struct RotatedSums {
  static constexpr uint64_t kFloatColumns = 1024, kFloatRows = 1024;

  RotatedSets<double, 8> wide;
  RotatedSets<float, 16> narrow;
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
