// align/pair/mix.h: digests put together in order: mix(mix(s, a), b) is not mix(mix(s, b), a).
#pragma once

#include <cstdint>

namespace opguard {

// splitmix64's finaliser over a running state.
inline uint64_t mix(uint64_t state, uint64_t value) {
  uint64_t x = (state ^ value) + 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

}  // namespace opguard
