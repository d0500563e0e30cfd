// Where the rows of a tensor are, one after the other, and what each weighs in the sums.
//
//   shape [2, 3, 4]     six rows of four elements; two runs of three that lie evenly
//   advance(2)          the address is 2 * stride further, the weight two powers of its base
//   advance(1)          the run ends: back to its beginning, one step along the dimension above
//   shape [5, 1, 4]     as [5, 4]: a dimension of size one is left out
//
// Counterexample: to divide a row's number by the sizes for each row. The cursor divides once,
// where it begins; then it adds, and only at the end of a run looks at the dimension above.
//
// gather() copies rows that are not adjacent. Of a transposed matrix it takes four rows by four
// elements at a time. Read row by row, each cache line would be fetched for one element.
#include "runtime/fingerprint/row_walk.h"

#include <cstdlib>
#include <cstring>

#include "runtime/fingerprint/lane_sums.h"

namespace opguard {
namespace {

// Along the dimension that is nearer in memory, so that a transposed matrix is read line by line.
template <typename Copy>
void each_element(int64_t row_stride, int64_t rows, int64_t stride, int64_t count, Copy copy) {
  if (std::abs(row_stride) < std::abs(stride)) {
    for (int64_t i = 0; i < count; ++i)
      for (int64_t r = 0; r < rows; ++r) copy(r, i);
  } else {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t i = 0; i < count; ++i) copy(r, i);
  }
}

typedef uint32_t Four __attribute__((vector_size(16)));

Four four_at(const char* at) {
  Four x;
  std::memcpy(&x, at, sizeof x);
  return x;
}

// A transposed matrix of 4-byte elements: the rows' elements i lie side by side. Four rows by four
// elements at a time, which are loaded and stored whole; what is left over is not copied.
void transposed(const char* from, int64_t rows, int64_t stride, int64_t count, char* to) {
  for (int64_t i = 0; i + 4 <= count; i += 4) {
    for (int64_t r = 0; r + 4 <= rows; r += 4) {
      const char* at = from + r * 4 + i * stride;
      const Four a = four_at(at), b = four_at(at + stride), c = four_at(at + 2 * stride),
                 d = four_at(at + 3 * stride);
      const Four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5),
                 cd = __builtin_shufflevector(c, d, 0, 4, 1, 5),
                 ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7),
                 cd2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      const Four out[4] = {__builtin_shufflevector(ab, cd, 0, 1, 4, 5),
                           __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
                           __builtin_shufflevector(ab2, cd2, 0, 1, 4, 5),
                           __builtin_shufflevector(ab2, cd2, 2, 3, 6, 7)};
      for (int64_t k = 0; k < 4; ++k) std::memcpy(to + ((r + k) * count + i) * 4, &out[k], 16);
    }
  }
}

template <size_t kSize>
void gather_of(const char* from, int64_t row_stride, int64_t rows, int64_t stride, int64_t count,
               char* to) {
  each_element(row_stride, rows, stride, count, [=](int64_t r, int64_t i) {
    std::memcpy(to + (r * count + i) * static_cast<int64_t>(kSize),
                from + r * row_stride + i * stride, kSize);
  });
}

}  // namespace

Rows::Rows(const Elements& e) : data(static_cast<const char*>(e.data)), size(e.size) {
  for (int64_t n : e.shape)
    if (n <= 0) return;
  const size_t dimensions = e.shape.size();
  if (dimensions > 0) {
    count = e.shape[dimensions - 1];
    stride = e.strides[dimensions - 1];
  }
  row_bytes = static_cast<uint64_t>(count) * size;
  adjacent = count == 1 || stride == static_cast<int64_t>(size);
  rows = 1;
  for (size_t d = 1; d < dimensions; ++d) {
    const int64_t n = e.shape[dimensions - 1 - d];
    if (n == 1) continue;
    rows *= static_cast<uint64_t>(n);
    sizes[outer] = n;
    strides[outer] = e.strides[dimensions - 1 - d];
    bases[outer++] = base_of(d);
  }
  row_stride = outer == 0 ? static_cast<int64_t>(row_bytes) : strides[0];
  even = true;
  for (size_t d = 1; d < outer; ++d) even &= strides[d] == strides[d - 1] * sizes[d - 1];
}

RowCursor::RowCursor(const Rows& rows, uint64_t row) : rows_(rows), at_(rows.data) {
  for (size_t d = 0; d < rows.outer; ++d) {
    const uint64_t n = static_cast<uint64_t>(rows.sizes[d]);
    index_[d] = static_cast<int64_t>(row % n);
    row /= n;
    at_ += index_[d] * rows.strides[d];
  }
  above_[rows.outer] = 1;
  for (size_t d = rows.outer; d-- > 0;)
    above_[d] = above_[d + 1] * power(rows.bases[d], static_cast<uint64_t>(index_[d]));
  weight_ = above_[0];
  if (rows.outer > 0) left_ = rows.sizes[0] - index_[0];
}

void RowCursor::advance(uint64_t rows, uint64_t step) {
  left_ -= static_cast<int64_t>(rows);
  if (left_ > 0) {
    at_ += static_cast<int64_t>(rows) * rows_.strides[0];
    weight_ *= step;
    return;
  }
  if (rows_.outer == 0) return;  // past the only row
  // `at_` is `rows` short of the end of the run, which is where its dimension began again.
  at_ -= (rows_.sizes[0] - static_cast<int64_t>(rows)) * rows_.strides[0];
  left_ = rows_.sizes[0];
  size_t d = 1;
  for (; d < rows_.outer; ++d) {
    if (++index_[d] < rows_.sizes[d]) break;
    at_ -= rows_.strides[d] * (rows_.sizes[d] - 1);
    index_[d] = 0;
  }
  if (d >= rows_.outer) return;  // past the last row
  at_ += rows_.strides[d];
  above_[d] *= rows_.bases[d];
  for (size_t k = d; k-- > 1;) above_[k] = above_[d];
  weight_ = above_[d];
}

// Widths are known to the compiler, so a copy of an element is one load and one store.
void gather(const char* from, int64_t row_stride, uint64_t rows, int64_t stride, int64_t count,
            uint32_t size, char* to) {
  const int64_t n = static_cast<int64_t>(rows);
  if (stride == static_cast<int64_t>(size) || count == 1) {
    const size_t bytes = static_cast<size_t>(count) * size;
    for (int64_t r = 0; r < n; ++r)
      std::memcpy(to + static_cast<size_t>(r) * bytes, from + r * row_stride, bytes);
    return;
  }
  switch (size) {
    case 1:
      return gather_of<1>(from, row_stride, n, stride, count, to);
    case 2:
      return gather_of<2>(from, row_stride, n, stride, count, to);
    case 4:
      if (row_stride == 4 && n >= 4 && count >= 4) {
        const int64_t whole_rows = n & ~int64_t{3}, whole = count & ~int64_t{3};
        transposed(from, n, stride, count, to);
        if (whole < count)
          each_element(row_stride, whole_rows, stride, count - whole, [=](int64_t r, int64_t i) {
            std::memcpy(to + (r * count + whole + i) * 4, from + r * 4 + (whole + i) * stride, 4);
          });
        return gather_of<4>(from + whole_rows * 4, row_stride, n - whole_rows, stride, count,
                            to + whole_rows * count * 4);
      }
      return gather_of<4>(from, row_stride, n, stride, count, to);
    case 8:
      return gather_of<8>(from, row_stride, n, stride, count, to);
    case 16:
      return gather_of<16>(from, row_stride, n, stride, count, to);
    default:
      return each_element(row_stride, n, stride, count, [=](int64_t r, int64_t i) {
        std::memcpy(to + (r * count + i) * static_cast<int64_t>(size),
                    from + r * row_stride + i * stride, size);
      });
  }
}

}  // namespace opguard
