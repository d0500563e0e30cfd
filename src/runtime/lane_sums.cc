#include "runtime/lane_sums.h"

#include <atomic>

namespace opguard {

namespace plain {
extern const LaneSums kSums;
}
#ifdef OPGUARD_X86_64_LEVELS
namespace v3 {
extern const LaneSums kSums;
}
namespace v4 {
extern const LaneSums kSums;
}
#endif

namespace {

uint64_t splitmix64(uint64_t state) {
  uint64_t z = state * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Newton's iteration; an odd number is its own inverse modulo 8.
uint64_t inverse_of(uint64_t odd) {
  uint64_t x = odd;
  for (int bits = 3; bits < 64; bits *= 2) x *= 2 - odd * x;
  return x;
}

std::atomic<const LaneSums*> g_chosen{nullptr};

}  // namespace

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

const Powers& powers() {
  static const Powers table = [] {
    Powers t;
    t.last[0] = t.second[0] = t.inverse[0] = 1;
    for (size_t i = 1; i < Powers::kCount; ++i) {
      t.last[i] = t.last[i - 1] * base_of(0);
      t.second[i] = t.second[i - 1] * base_of(1);
    }
    for (size_t i = 1; i < 65; ++i) t.inverse[i] = t.inverse[i - 1] * inverse_of(base_of(0));
    return t;
  }();
  return table;
}

const std::vector<const LaneSums*>& lane_sums_here() {
  // Never destroyed: threads may still fingerprint while the process ends.
  static const auto* here = [] {
    auto* list = new std::vector<const LaneSums*>;
#ifdef OPGUARD_X86_64_LEVELS
    if (__builtin_cpu_supports("x86-64-v4")) list->push_back(&v4::kSums);
    if (__builtin_cpu_supports("x86-64-v3")) list->push_back(&v3::kSums);
#endif
    list->push_back(&plain::kSums);
    return list;
  }();
  return *here;
}

const LaneSums& lane_sums() {
  const LaneSums* chosen = g_chosen.load(std::memory_order_relaxed);
  return chosen != nullptr ? *chosen : *lane_sums_here().front();
}

bool choose_lane_sums(std::string_view name) {
  if (name.empty()) {
    g_chosen.store(nullptr, std::memory_order_relaxed);
    return true;
  }
  for (const LaneSums* sums : lane_sums_here())
    if (name == sums->name) {
      g_chosen.store(sums, std::memory_order_relaxed);
      return true;
    }
  return false;
}

}  // namespace opguard
