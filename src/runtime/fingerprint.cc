#include "runtime/fingerprint.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

// One body, compiled for each width of vector and chosen when the library is loaded.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define OPGUARD_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define OPGUARD_CLONES
#endif

namespace opguard {
namespace {

// mix(0) == 0, so zero bytes add nothing. The shift by 29 keeps the halves of a lane apart: with 32
// the flip of both sign bits of two packed floats would leave only the top bit changed.
inline uint64_t mix(uint64_t x) {
  x ^= x >> 29;
  x *= 0xd6e8feb86659fd93u;
  return x ^ (x >> 32);
}

uint64_t splitmix64(uint64_t state) {
  uint64_t z = state * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// 5 or 3 mod 8: of full order modulo 2^64.
uint64_t base_of(size_t dim) {
  return (splitmix64(dim + 1) & ~uint64_t{7}) | (dim % 2 == 0 ? 5 : 3);
}

uint64_t power(uint64_t base, uint64_t exponent) {
  uint64_t r = 1;
  for (; exponent > 0; exponent >>= 1, base *= base)
    if (exponent & 1) r *= base;
  return r;
}

// Lanes of a row are summed by blocks: the powers of one block fit the first-level cache beside the
// data, and the sum has no chain between lanes.
constexpr size_t kBlock = 512;

const std::array<uint64_t, kBlock>& powers() {
  static const auto table = [] {
    std::array<uint64_t, kBlock> t{};
    uint64_t p = 1;
    for (uint64_t& v : t) {
      v = p;
      p *= base_of(0);
    }
    return t;
  }();
  return table;
}

template <typename Lane>
inline __attribute__((always_inline)) uint64_t block_sum(const char* data, size_t lanes,
                                                         const uint64_t* weights) {
  uint64_t sum = 0;
  for (size_t i = 0; i < lanes; ++i) {
    Lane lane;
    std::memcpy(&lane, data + i * sizeof(Lane), sizeof(Lane));
    sum += mix(lane) * weights[i];
  }
  return sum;
}

OPGUARD_CLONES uint64_t sum8(const char* d, size_t n, const uint64_t* w) {
  return block_sum<uint64_t>(d, n, w);
}
OPGUARD_CLONES uint64_t sum4(const char* d, size_t n, const uint64_t* w) {
  return block_sum<uint32_t>(d, n, w);
}
OPGUARD_CLONES uint64_t sum2(const char* d, size_t n, const uint64_t* w) {
  return block_sum<uint16_t>(d, n, w);
}
OPGUARD_CLONES uint64_t sum1(const char* d, size_t n, const uint64_t* w) {
  return block_sum<uint8_t>(d, n, w);
}

using Sum = uint64_t (*)(const char*, size_t, const uint64_t*);

// The lane of a row: the widest of 8, 4, 2, 1 bytes that divides it.
struct LaneRule {
  size_t width;
  Sum sum;
};

LaneRule lane_rule(uint64_t row_bytes) {
  if (row_bytes % 8 == 0) return {8, sum8};
  if (row_bytes % 4 == 0) return {4, sum4};
  if (row_bytes % 2 == 0) return {2, sum2};
  return {1, sum1};
}

// Hash of one row. block_step: g_0 to the power of kBlock.
uint64_t contiguous_row(const char* data, uint64_t bytes, LaneRule lane, uint64_t block_step) {
  const uint64_t* weights = powers().data();
  uint64_t hash = 0, scale = 1;
  for (uint64_t lanes = bytes / lane.width; lanes > 0;) {
    size_t n = std::min<uint64_t>(lanes, kBlock);
    hash += scale * lane.sum(data, n, weights);
    data += n * lane.width;
    lanes -= n;
    scale *= block_step;
  }
  return hash;
}

// The same with elements `stride` bytes apart, gathered a block at a time.
uint64_t strided_row(const char* data, int64_t count, int64_t stride, uint32_t size, LaneRule lane,
                     uint64_t block_step) {
  const uint64_t* weights = powers().data();
  char block[kBlock * 8];
  // A multiple of eight elements holds whole lanes, also of a size that is no power of two.
  const int64_t block_elements = static_cast<int64_t>(kBlock * lane.width / size) & ~int64_t{7};
  uint64_t hash = 0, scale = 1;
  for (int64_t done = 0; done < count;) {
    int64_t n = std::min(count - done, block_elements);
    for (int64_t i = 0; i < n; ++i, data += stride) std::memcpy(block + i * size, data, size);
    size_t lanes = static_cast<size_t>(n) * size / lane.width;
    hash += scale * lane.sum(block, lanes, weights);
    done += n;
    scale *= lanes == kBlock ? block_step : power(base_of(0), lanes);
  }
  return hash;
}

// Calls visit(first element of a row) for every row in logical order.
template <typename Visit>
void each_row(const Elements& e, Visit visit) {
  const size_t outer = e.shape.empty() ? 0 : e.shape.size() - 1;
  std::vector<int64_t> index(outer, 0);
  const char* row = static_cast<const char*>(e.data);
  while (true) {
    visit(row);
    size_t d = outer;
    while (d > 0) {
      --d;
      if (++index[d] < e.shape[d]) {
        row += e.strides[d];
        break;
      }
      row -= e.strides[d] * (e.shape[d] - 1);
      index[d] = 0;
      if (d == 0) return;
    }
    if (outer == 0) return;
  }
}

// h of all elements as one row, from a copy in logical order.
uint64_t flat_of_copy(const Elements& e, int64_t row_count, int64_t row_stride, LaneRule lane) {
  std::vector<char> copy;
  each_row(e, [&](const char* row) {
    for (int64_t i = 0; i < row_count; ++i, row += row_stride)
      copy.insert(copy.end(), row, row + e.size);
  });
  return contiguous_row(copy.data(), copy.size(), lane, power(base_of(0), kBlock));
}

}  // namespace

Fingerprint fingerprint(const Elements& e, uint64_t* flat) {
  Fingerprint result;
  if (flat) *flat = 0;
  for (int64_t n : e.shape)
    if (n <= 0) return result;
  const size_t dims = e.shape.size();
  const int64_t row_count = dims == 0 ? 1 : e.shape[dims - 1];
  const int64_t row_stride = dims == 0 ? e.size : e.strides[dims - 1];
  const uint64_t row_bytes = static_cast<uint64_t>(row_count) * e.size;
  const LaneRule lane = lane_rule(row_bytes);
  const uint64_t block_step = power(base_of(0), kBlock);
  const bool contiguous = row_count == 1 || row_stride == static_cast<int64_t>(e.size);

  // An odometer over all dimensions but the last. weight[d] is the product of g^index over
  // dimensions 0..d, so that a step of the innermost one costs one multiplication.
  const size_t outer = dims == 0 ? 0 : dims - 1;
  std::vector<int64_t> index(outer, 0);
  std::vector<uint64_t> weight(outer + 1, 1), base(outer);
  for (size_t d = 0; d < outer; ++d) base[d] = base_of(dims - 1 - d);  // dims count from the last
  // The flat hash follows from the row hashes where one lane serves rows and whole.
  uint64_t rows = 1;
  for (size_t d = 0; d < outer; ++d) rows *= static_cast<uint64_t>(e.shape[d]);
  const LaneRule flat_lane = lane_rule(row_bytes * rows);
  const uint64_t row_step = power(base_of(0), row_bytes / lane.width);
  uint64_t row_weight = 1, flat_sum = 0;
  auto finish = [&] {
    if (flat)
      *flat = flat_lane.width == lane.width ? flat_sum
                                            : flat_of_copy(e, row_count, row_stride, flat_lane);
    return result;
  };
  const char* row = static_cast<const char*>(e.data);
  while (true) {
    uint64_t hash = contiguous ? contiguous_row(row, row_bytes, lane, block_step)
                               : strided_row(row, row_count, row_stride, e.size, lane, block_step);
    result.h += hash * weight[outer];
    result.m += mix(hash);
    flat_sum += hash * row_weight;
    row_weight *= row_step;
    size_t d = outer;
    while (d > 0) {
      --d;
      if (++index[d] < e.shape[d]) {
        row += e.strides[d];
        weight[d + 1] *= base[d];
        break;
      }
      row -= e.strides[d] * (e.shape[d] - 1);
      index[d] = 0;
      if (d == 0) return finish();
    }
    if (outer == 0) return finish();
    // Dimensions that wrapped begin again at the weight of the one that moved.
    for (size_t k = d + 1; k < outer; ++k) weight[k + 1] = weight[d + 1];
  }
}

}  // namespace opguard
