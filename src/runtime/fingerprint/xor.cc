// The XOR of 8-byte words of the bytes in logical order, wherever they lie. What bytes at offset 13
// add is their own XOR, turned by 13 % 8 bytes: so parts are read apart and put together.
//
//   one row of 10 bytes, then another     the second begins in the middle of a word
//   at_offset(x, 10)                      turns its XOR by 2 bytes
//
// Rows that touch are read as one piece; others are copied into 16 KiB first.
#include "runtime/fingerprint/xor.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "runtime/fingerprint/fingerprint.h"
#include "runtime/fingerprint/lane_sums.h"
#include "runtime/fingerprint/parallel.h"

namespace opguard {
namespace {

constexpr uint64_t kXorChunkBytes = 16 << 10;
constexpr uint64_t kXorTaskBytes = 512 << 10;

// What bytes at that offset of the whole add, given their XOR as if they came first.
uint64_t at_offset(uint64_t words, uint64_t offset) {
  return std::rotl(words, static_cast<int>(8 * (offset % 8)));
}

// Elements [from, to) of the row at the cursor.
uint64_t part_of_row(const Rows& rows, const char* row, int64_t from, int64_t to) {
  const LaneSums& sums = lane_sums();
  const char* at = row + from * rows.stride;
  if (rows.adjacent) return sums.xored(at, static_cast<uint64_t>(to - from) * rows.size);
  char buffer[kXorChunkBytes];
  // Multiples of 8 elements, so that every piece but the last is whole words.
  const int64_t chunk = static_cast<int64_t>(kXorChunkBytes / rows.size) & ~int64_t{7};
  uint64_t x = 0;
  for (int64_t n; from < to; from += n, at += n * rows.stride) {
    n = std::min(to - from, chunk);
    gather(at, 0, 1, rows.stride, n, rows.size, buffer);
    x ^= sums.xored(buffer, static_cast<uint64_t>(n) * rows.size);
  }
  return x;
}

uint64_t some_rows(const Rows& rows, uint64_t first, uint64_t count) {
  const LaneSums& sums = lane_sums();
  RowCursor cursor(rows, first);
  uint64_t x = 0, offset = first * rows.row_bytes;
  const bool gapless = rows.adjacent && rows.row_stride == static_cast<int64_t>(rows.row_bytes);
  char buffer[kXorChunkBytes];
  for (uint64_t n; count > 0; count -= n, offset += n * rows.row_bytes) {
    n = std::min(count, cursor.run());
    if (gapless) {
      x ^= at_offset(sums.xored(cursor.at(), n * rows.row_bytes), offset);
    } else if (rows.row_bytes <= kXorChunkBytes) {
      n = std::min(n, kXorChunkBytes / rows.row_bytes);
      gather(cursor.at(), rows.row_stride, n, rows.stride, rows.count, rows.size, buffer);
      x ^= at_offset(sums.xored(buffer, n * rows.row_bytes), offset);
    } else {
      n = 1;
      x ^= at_offset(part_of_row(rows, cursor.at(), 0, rows.count), offset);
    }
    cursor.advance(n, 1);
  }
  return x;
}

}  // namespace

uint64_t xor64(const Elements& e, unsigned threads) {
  const Rows rows(e);
  if (rows.rows == 0) return 0;
  if (threads <= 1 || rows.rows * rows.row_bytes < kParallelBytes)
    return some_rows(rows, 0, rows.rows);
  // Groups of rows, or parts of long ones; each part but a row's last is whole words.
  const uint64_t group = std::max<uint64_t>(kXorTaskBytes / rows.row_bytes, 1);
  const int64_t part =
      group > 1 ? rows.count
                : std::min<int64_t>(rows.count,
                                    static_cast<int64_t>(kXorTaskBytes / rows.size) & ~int64_t{7});
  const uint64_t a_row = static_cast<uint64_t>((rows.count + part - 1) / part);
  std::vector<uint64_t> parts((rows.rows + group - 1) / group * a_row);
  parallel_for(parts.size(), threads, [&](size_t i) {
    const uint64_t first = i / a_row * group;
    if (a_row == 1) {
      parts[i] = some_rows(rows, first, std::min(group, rows.rows - first));
      return;
    }
    const int64_t from = static_cast<int64_t>(i % a_row) * part;
    const RowCursor cursor(rows, first);
    parts[i] = at_offset(part_of_row(rows, cursor.at(), from, std::min(from + part, rows.count)),
                         first * rows.row_bytes + static_cast<uint64_t>(from) * rows.size);
  });
  uint64_t x = 0;
  for (uint64_t p : parts) x ^= p;
  return x;
}

uint32_t xor32(const Elements& elements, unsigned threads) {
  const uint64_t x = xor64(elements, threads);
  return static_cast<uint32_t>(x ^ (x >> 32));
}

}  // namespace opguard
