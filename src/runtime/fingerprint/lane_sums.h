// runtime/fingerprint/lane_sums.h: the inner loops of the fingerprints over contiguous bytes, in
// one version for each width of vector the processor may have. docs/formats/record-format.md has
// the terms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "record/og1_base.h"

namespace opguard {

// Powers of the two innermost bases. g is odd, so it has an inverse modulo 2^64.
struct Powers {
  static constexpr size_t kCount = 512;
  alignas(64) uint64_t last[kCount];    // g_0^i
  alignas(64) uint64_t second[kCount];  // g_1^i
  uint64_t inverse[65];                 // g_0^-i
};
const Powers& powers();

inline uint64_t mix(uint64_t x) {
  // mix(0) == 0, so zero bytes add nothing. The shift by 29 keeps the halves of a lane apart. With
  // 32 the flip of both sign bits of two packed floats would leave only the top bit changed.
  x ^= x >> 29;
  x *= 0xd6e8feb86659fd93u;
  return x ^ (x >> 32);
}

// What a mask check found in some elements.
struct MaskSeen {
  bool masked = false;  // at least one
  bool other = false;   // one that no additive mask holds; the output is then meaningless
};

enum class FloatType : uint8_t { none, float16, bfloat16, float32, float64 };

// `width`: bytes of a lane, 8, 4, 2 or 1. Nothing need be aligned. `ahead`: more of the same
// follows and lies in memory rather than in a cache, so that it is fetched early. No result depends
// on it.
struct LaneSums {
  const char* name;
  // Sum over lanes i of mix(lane_i) * g_0^i.
  uint64_t (*segment)(const char* data, uint64_t lanes, size_t width, bool ahead);
  // The same for each of `rows` rows that begin row_stride bytes apart, into out.
  void (*rows)(const char* data, int64_t row_stride, size_t rows, uint64_t lanes, size_t width,
               uint64_t* out, bool ahead);
  // Of rows whose elements lie side by side, as those of a transposed matrix: row r's element i is
  // at data + r * size + i * stride. Adds to sums[r] that sum times `weight`, of lanes of 8 bytes.
  // size: of an element, 8, 4 or 2.
  void (*across)(const char* data, int64_t stride, size_t rows, uint64_t lanes, size_t size,
                 uint64_t weight, uint64_t* sums);
  // Sum over i of mix(values[i]).
  uint64_t (*mixed)(const uint64_t* values, size_t count);
  // Sum over i of values[i] * weights[i].
  uint64_t (*weighted)(const uint64_t* values, const uint64_t* weights, size_t count);
  // XOR of the 8-byte words of `bytes` bytes, the last one padded with zeros.
  uint64_t (*xored)(const char* data, uint64_t bytes);
  // The layout-free digest of `count` numbers (of complex elements: parts) of each of `rows` rows
  // that begin `stride` bytes apart; type: opguard_element_type.
  uint64_t (*elements)(const char* data, int64_t stride, uint64_t rows, uint64_t count,
                       uint32_t type);
  // out[i]: 1 where element i is masked, 0 where it is zero.
  MaskSeen (*masked)(const char* data, size_t count, FloatType type, uint8_t* out);
};

// The best version for this processor, or the one chosen below.
const LaneSums& lane_sums();

// Every version this processor can run, the best first.
const std::vector<const LaneSums*>& lane_sums_here();

// For tests and measurements: from now on the version of that name; "" chooses the best again.
// False if there is none here.
bool choose_lane_sums(std::string_view name);

}  // namespace opguard
