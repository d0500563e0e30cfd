// The loops are compiled three times, for x86-64, v3 and v4, each into a namespace of its own.
// Which one runs is told by the processor, once, and all give the same sums.
//
//   lane_sums_here()     [v4, v3, plain] on a processor with AVX-512, the widest first
//   choose_lane_sums()   another one of these by name, to compare them; "" goes back to the first
//
// Tables of powers are shared by all threads, and made when first asked for.
#include "runtime/fingerprint/lane_sums.h"

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

// Newton's iteration; an odd number is its own inverse modulo 8.
// Each round doubles the bits that are right, modulo 2^64: 3, 6, 12, 24, 48, 96.
uint64_t inverse_of(uint64_t odd) {
  uint64_t x = odd;
  for (int bits = 3; bits < 64; bits *= 2) x *= 2 - odd * x;
  return x;
}

std::atomic<const LaneSums*> g_chosen{nullptr};

}  // namespace

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
