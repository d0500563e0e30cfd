// runtime/fingerprint.h: og1, the 128-bit digest of a tensor's logical content:
// docs/record-format.md.
#pragma once

#include <cstdint>
#include <vector>

#include "record/record.h"

namespace opguard {

// Elements in memory, whatever their type: only their bytes count. Strides are in bytes and may be
// zero (broadcast) or negative (numpy).
struct Elements {
  const void* data = nullptr;  // first element in logical order
  uint32_t size = 0;           // bytes of one element, 1 to 16
  std::vector<int64_t> shape;  // 0-dimensional: empty
  std::vector<int64_t> strides;
};

// Reads each element once, copies nothing; memory layout does not matter, logical shape does.
// flat, if given, gets the h of the same elements as one row, which every reshape keeps; it costs a
// second pass only where rows and the whole have lanes of different widths.
Fingerprint fingerprint(const Elements& elements, uint64_t* flat = nullptr);

}  // namespace opguard
