// record/og1_base.h: the weights of og1 (docs/formats/record-format.md), from which what a record
// holds of one tensor tells that of its parts, its repetitions and its reshapes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace opguard {

// g_dim, dimensions counted from the last: a step of splitmix64 (Steele, Lea, Flood 2014). It is 5
// or 3 mod 8, and so of full order modulo 2^64.
inline uint64_t base_of(size_t dim) {
  uint64_t z = (uint64_t{dim} + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return ((z ^ (z >> 31)) & ~uint64_t{7}) | (dim % 2 == 0 ? 5 : 3);
}

inline uint64_t power(uint64_t base, uint64_t exponent) {
  uint64_t r = 1;
  for (; exponent > 0; exponent >>= 1, base *= base)
    if (exponent & 1) r *= base;
  return r;
}

}  // namespace opguard
