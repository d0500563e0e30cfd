// A view's rows are looked up by their address: (address - data) / pitch is the row that was read.
//
//   read    [512, 4096], pitch 16,384 bytes
//   view    [4, 128, 4096]     row (1, 0) lies 128 pitches on: hash 128
//   view    [512, 4095]        another count of a row: not of these
//
// h, m and the flat hash are folded from these hashes with the view's own weights. m does not
// depend on the order. So where it is another, the view does not have each row once, and it is
// read.
//
// The elements' digest is that of what was read: the rows are the same.
#include "runtime/fingerprint/row_hashes.h"

#include <algorithm>
#include <cstddef>

#include "runtime/fingerprint/lane_sums.h"

namespace opguard {
namespace {

// A row of less is read about as fast as its hash is folded.
constexpr uint64_t kRowBytes = 128;
constexpr uint64_t kMostRows = 8192, kLeastBytes = 4096;
constexpr size_t kRowsAtOnce = 256;
static_assert(kRowsAtOnce <= Powers::kCount);

// Where in `read` each row of a view is, in the view's order.
class RowNumbers {
 public:
  RowNumbers(const Rows& view, const RowHashes& read)
      : view_(view), read_(read), cursor_(view, 0) {}

  // The hashes of the rows from here to the end of the innermost run, `most` at most. False: not a
  // row of those.
  bool take(uint64_t most, uint64_t* hashes, uint64_t& n, uint64_t& weight) {
    n = std::min(most, cursor_.run());
    weight = cursor_.weight();
    const int64_t first = cursor_.at() - read_.data;
    const int64_t step = n > 1 ? view_.row_stride : 0;
    const int64_t last = first + static_cast<int64_t>(n - 1) * step;
    const auto rows = static_cast<int64_t>(read_.hashes.size());
    if (std::min(first, last) < 0 || std::max(first, last) > (rows - 1) * read_.pitch ||
        first % read_.pitch != 0 || step % read_.pitch != 0)
      return false;
    const int64_t stride = step / read_.pitch;
    const uint64_t* from = read_.hashes.data() + first / read_.pitch;
    for (uint64_t i = 0; i < n; ++i) hashes[i] = from[static_cast<int64_t>(i) * stride];
    return true;
  }
  void skip(uint64_t n, uint64_t step) { cursor_.advance(n, step); }

 private:
  const Rows& view_;
  const RowHashes& read_;
  RowCursor cursor_;
};

}  // namespace

void RowHashes::of(const Elements& elements, const Digest& of_all) {
  const Rows rows(elements);
  data = rows.data;
  size = rows.size;
  count = rows.count;
  pitch = rows.row_stride;
  digest = of_all;
}

size_t row_hashes(const Elements& elements) {
  const Rows rows(elements);
  const bool worth = rows.adjacent && rows.even && rows.row_bytes >= kRowBytes && rows.rows >= 2 &&
                     rows.rows <= kMostRows && rows.row_stride > 0 &&
                     rows.rows * rows.row_bytes >= kLeastBytes;
  return worth ? static_cast<size_t>(rows.rows) : 0;
}

std::optional<Digest> digest_of_rows(const Elements& elements, const RowHashes& read) {
  const Rows rows(elements);
  if (rows.size != read.size || rows.count != read.count || !rows.adjacent ||
      rows.rows != read.hashes.size() || rows.outer == 0 || read.digest.pattern)
    return std::nullopt;
  const size_t width = lane_width(rows.row_bytes);
  if (lane_width(rows.rows * rows.row_bytes) != width) return std::nullopt;
  const LaneSums& sums = lane_sums();
  const uint64_t base = rows.bases[0], row_step = power(base_of(0), rows.row_bytes / width);
  uint64_t own[kRowsAtOnce], flat_steps[kRowsAtOnce], hashes[kRowsAtOnce];
  const uint64_t longest = std::min<uint64_t>(static_cast<uint64_t>(rows.sizes[0]), kRowsAtOnce);
  const uint64_t* steps = powers().second;
  if (base != powers().second[1]) {
    own[0] = 1;
    for (uint64_t i = 1; i < longest; ++i) own[i] = own[i - 1] * base;
    steps = own;
  }
  flat_steps[0] = 1;
  for (uint64_t i = 1; i < longest; ++i) flat_steps[i] = flat_steps[i - 1] * row_step;
  RowNumbers numbers(rows, read);
  Digest result = read.digest;
  result.value = {};
  result.flat = 0;
  uint64_t flat_weight = 1;
  for (uint64_t done = 0, n = 0, weight = 0; done < rows.rows; done += n) {
    if (!numbers.take(kRowsAtOnce, hashes, n, weight)) return std::nullopt;
    result.value.h += weight * sums.weighted(hashes, steps, n);
    result.value.m += sums.mixed(hashes, n);
    result.flat += flat_weight * sums.weighted(hashes, flat_steps, n);
    flat_weight *= flat_steps[n - 1] * row_step;
    numbers.skip(n, steps[n - 1] * base);
  }
  // m is the rows' own sum: the same one is of the same rows, however they are ordered. Of a view
  // that has one of them twice it is another.
  if (result.value.m != read.digest.value.m) return std::nullopt;
  return result;
}

}  // namespace opguard
