// og1 as docs/record-format.md defines it, lane by lane, and tensors to try it on.
#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "runtime/fingerprint.h"

namespace opguard {

inline Elements row_of(const void* data, uint32_t size, int64_t count) {
  return {data, size, {count}, {static_cast<int64_t>(size)}};
}

// On bytes in logical order.
struct Reference {
  static uint64_t mix(uint64_t x) {
    x ^= x >> 29;
    x *= 0xd6e8feb86659fd93u;
    return x ^ (x >> 32);
  }
  static uint64_t base(uint64_t dim) {
    uint64_t z = (dim + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (z & ~uint64_t{7}) | (dim % 2 == 0 ? 5 : 3);
  }
  static uint64_t raised(uint64_t base, uint64_t exponent) {
    uint64_t product = 1;
    for (; exponent > 0; exponent /= 2, base *= base)
      if (exponent % 2 == 1) product *= base;
    return product;
  }
  static Fingerprint of(const std::vector<uint8_t>& bytes, uint32_t size,
                        const std::vector<int64_t>& shape) {
    Fingerprint f;
    uint64_t row_bytes = size * static_cast<uint64_t>(shape.empty() ? 1 : shape.back());
    if (row_bytes == 0 || bytes.empty()) return f;
    uint64_t lane = row_bytes % 8 == 0 ? 8 : row_bytes % 4 == 0 ? 4 : row_bytes % 2 == 0 ? 2 : 1;
    for (uint64_t row = 0; row < bytes.size() / row_bytes; ++row) {
      uint64_t hash = 0, weight = 1;
      for (uint64_t at = 0; at < row_bytes; at += lane) {
        uint64_t value = 0;
        for (uint64_t b = 0; b < lane; ++b)
          value |= uint64_t{bytes[row * row_bytes + at + b]} << (8 * b);
        hash += mix(value) * weight;
        weight *= base(0);
      }
      uint64_t scale = 1, rest = row;
      for (size_t d = 1; d < shape.size(); ++d) {
        uint64_t n = static_cast<uint64_t>(shape[shape.size() - 1 - d]);
        scale *= raised(base(d), rest % n);
        rest /= n;
      }
      f.h += hash * scale;
      f.m += mix(hash);
    }
    return f;
  }
};

inline std::vector<uint8_t> random_bytes(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(n);
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
  return bytes;
}

// Any permutation of dimensions, steps, reversals and broadcasts of a buffer.
struct Layout {
  std::vector<uint8_t> buffer;
  uint32_t size = 1;
  std::vector<int64_t> shape, strides;
  int64_t first = 0;

  Layout(std::mt19937& random, int64_t longest) {
    const uint32_t kSizes[] = {1, 2, 4, 8, 12, 16};
    size = kSizes[random() % 6];
    const size_t dims = random() % 5;
    shape.resize(dims);
    strides.resize(dims);
    std::vector<size_t> order(dims);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    int64_t span = size;
    for (size_t d : order) {
      shape[d] =
          static_cast<int64_t>(random() % static_cast<uint64_t>(longest)) + (random() % 9 != 0);
      const bool broadcast = random() % 6 == 0;
      strides[d] = broadcast ? 0 : span * static_cast<int64_t>(1 + random() % 8 / 7);
      if (!broadcast) span += strides[d] * std::max<int64_t>(shape[d] - 1, 0);
      if (!broadcast && shape[d] > 0 && random() % 5 == 0) {
        first += strides[d] * (shape[d] - 1);
        strides[d] = -strides[d];
      }
    }
    buffer = random_bytes(static_cast<size_t>(span) + 16, static_cast<uint32_t>(random()));
  }

  Elements elements() const { return {buffer.data() + first, size, shape, strides}; }
};

inline int64_t count_of(const Elements& e) {
  return std::accumulate(e.shape.begin(), e.shape.end(), int64_t{1}, std::multiplies<>());
}

// The bytes in logical order.
inline std::vector<uint8_t> logical(const Elements& e) {
  std::vector<uint8_t> bytes;
  const int64_t count = count_of(e);
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, at = 0;
    for (size_t d = e.shape.size(); d-- > 0; rest /= e.shape[d])
      at += e.strides[d] * (rest % e.shape[d]);
    const auto* element = static_cast<const uint8_t*>(e.data) + at;
    bytes.insert(bytes.end(), element, element + e.size);
  }
  return bytes;
}

}  // namespace opguard
