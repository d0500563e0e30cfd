// runtime/fingerprint/row_walk.h: the rows of a tensor in logical order, however they lie in
// memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace opguard {

// Elements in memory, whatever their type: only their bytes count. Strides are in bytes and may be
// zero (broadcast) or negative (numpy).
struct Elements {
  const void* data = nullptr;  // first element in logical order
  uint32_t size = 0;           // bytes of one element, 1 to 16
  std::vector<int64_t> shape;  // 0-dimensional: empty
  std::vector<int64_t> strides;
};

// A row is the last dimension. The others are kept innermost first, without those of size one,
// which leaves at most 63.
struct Rows {
  explicit Rows(const Elements& elements);

  const char* data = nullptr;
  uint32_t size = 0;       // bytes of one element
  uint64_t rows = 0;       // zero: no elements
  int64_t count = 1;       // elements of a row
  int64_t stride = 0;      // bytes between them
  uint64_t row_bytes = 0;  // as content, not in memory
  bool adjacent = false;   // the elements of a row are contiguous
  bool even = false;       // all rows are row_stride bytes apart
  int64_t row_stride = 0;  // of the innermost dimension kept
  size_t outer = 0;        // dimensions kept
  std::array<int64_t, 64> sizes, strides;
  std::array<uint64_t, 64> bases;  // their g_d, d counted from the last dimension of all
};

// Where a row begins and, for the sums, which power of each base it weighs.
class RowCursor {
 public:
  RowCursor(const Rows& rows, uint64_t row);

  const char* at() const { return at_; }
  // Rows to the end of the innermost dimension kept, this one included.
  uint64_t run() const { return static_cast<uint64_t>(left_); }
  // Product over the dimensions d >= 1 of g_d^(i_d).
  uint64_t weight() const { return weight_; }
  // step: g^rows of the innermost dimension kept; at most run() rows.
  void advance(uint64_t rows, uint64_t step);

 private:
  const Rows& rows_;
  const char* at_;
  int64_t left_ = 1;
  uint64_t weight_ = 1;
  std::array<int64_t, 64> index_;
  std::array<uint64_t, 65> above_;  // product over this dimension and those outside it
};

// Copies `count` elements of each of `rows` rows, in logical order and without gaps.
void gather(const char* from, int64_t row_stride, uint64_t rows, int64_t stride, int64_t count,
            uint32_t size, char* to);

}  // namespace opguard
