#include "align/values/digests.h"

namespace opguard {

bool has_elements(const Slot& slot) { return slot.has_digest && slot.digest != 0; }

bool same_elements(const Slot& a, const Slot& b) {
  return a.has_digest && b.has_digest && a.digest == b.digest;
}

bool is_sum_of(const Slot& whole, std::span<const Slot> parts) {
  uint64_t sum = 0;
  for (const Slot& part : parts) {
    if (!part.has_digest) return false;
    sum += part.digest;
  }
  return whole.has_digest && whole.digest == sum;
}

bool is_repeat_of(const Slot& whole, const Slot& one, uint64_t k) {
  return whole.has_digest && one.has_digest && whole.digest == k * one.digest;
}

}  // namespace opguard
