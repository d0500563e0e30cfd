// runtime/fingerprint/lane_stream.h: the hash of one long row that comes in pieces.
#pragma once

#include <cstddef>
#include <cstdint>

namespace opguard {

// The lane of a row: the widest of 8, 4, 2, 1 bytes that divides it.
inline size_t lane_width(uint64_t row_bytes) {
  return row_bytes % 8 == 0 ? 8 : row_bytes % 4 == 0 ? 4 : row_bytes % 2 == 0 ? 2 : 1;
}

class LaneStream {
 public:
  // first_lane: how many lanes of the row come before the first byte fed.
  LaneStream(size_t width, uint64_t first_lane);

  // Pieces need not be whole lanes; the row is.
  void feed(const char* data, uint64_t bytes);
  uint64_t sum() const { return sum_; }

 private:
  size_t width_, pending_ = 0;
  char lane_[8] = {};  // of which `pending_` bytes have come
  uint64_t weight_, sum_ = 0;
  uint64_t step_lanes_ = 0, step_ = 1;  // g_0^step_lanes_: pieces are mostly of one size
};

}  // namespace opguard
