// A lane, here of 8 bytes, may lie across two pieces. Its beginning waits in `lane_` for the rest.
//
//   feed(12 bytes)    lane 0 is summed, 4 bytes wait
//   feed(20 bytes)    4 bytes end lane 1; lanes 2 and 3 follow where they lie
//
// weight_ is the power of the base that the next lane has. Pieces are mostly of one size, so the
// power for that many lanes is kept (step_).
#include "runtime/fingerprint/lane_stream.h"

#include <algorithm>
#include <cstring>

#include "runtime/fingerprint/lane_sums.h"

namespace opguard {

LaneStream::LaneStream(size_t width, uint64_t first_lane)
    : width_(width), weight_(power(base_of(0), first_lane)) {}

void LaneStream::feed(const char* data, uint64_t bytes) {
  const LaneSums& sums = lane_sums();
  if (pending_ > 0) {
    const size_t n = static_cast<size_t>(std::min<uint64_t>(width_ - pending_, bytes));
    std::memcpy(lane_ + pending_, data, n);
    pending_ += n;
    data += n;
    bytes -= n;
    if (pending_ < width_) return;
    sum_ += weight_ * sums.segment(lane_, 1, width_, false);
    weight_ *= base_of(0);
    pending_ = 0;
  }
  const uint64_t lanes = bytes / width_;
  if (lanes > 0) {
    sum_ += weight_ * sums.segment(data, lanes, width_, false);
    if (lanes != step_lanes_) {
      step_lanes_ = lanes;
      step_ = power(base_of(0), lanes);
    }
    weight_ *= step_;
  }
  pending_ = static_cast<size_t>(bytes - lanes * width_);
  std::memcpy(lane_, data + lanes * width_, pending_);
}

}  // namespace opguard
