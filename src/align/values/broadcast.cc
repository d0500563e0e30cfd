#include "align/values/broadcast.h"

#include <algorithm>
#include <set>

#include "align/values/value_index.h"
#include "record/og1_base.h"

namespace opguard {
namespace {

std::vector<int64_t> without_leading_ones(const std::vector<int64_t>& shape) {
  auto first = std::find_if(shape.begin(), shape.end(), [](int64_t n) { return n != 1; });
  return {first, shape.end()};
}

// 1 + base + ... + base^(count - 1), by halves: base - 1 is even and has no inverse to divide by.
uint64_t geometric_sum(uint64_t base, uint64_t count) {
  uint64_t sum = 0, weight = 1;  // of the terms taken so far, and of the next one
  uint64_t block = 1;            // sum of as many terms as the bit is worth
  for (; count > 0; count >>= 1) {
    if (count & 1) {
      sum += weight * block;
      weight *= base;
    }
    block += block * base;
    base *= base;
  }
  return sum;
}

}  // namespace

uint64_t repetition_factor(const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  if (from.empty() || to.size() < from.size() || from.back() != to.back() || from == to) return 0;
  uint64_t factor = 1;
  for (size_t d = 1; d < to.size(); ++d) {
    const int64_t have = d < from.size() ? from[from.size() - 1 - d] : 1;
    const int64_t want = to[to.size() - 1 - d];
    if (have == want) continue;
    if (have != 1 || want < 1) return 0;
    factor *= geometric_sum(base_of(d), static_cast<uint64_t>(want));
  }
  return factor;
}

Broadcasts::Broadcasts(const Run& held, const Run& asking) {
  std::set<Type> asked;
  for (const ProcessLog& log : asking.processes)
    for (const Meta& meta : log.metas) asked.insert({meta.dtype, without_leading_ones(meta.shape)});
  for (const ProcessLog& log : held.processes) {
    // Most shapes are in no such relation: their values need not be kept.
    std::vector<std::vector<uint64_t>*> lists;
    for (const Meta& meta : log.metas) {
      const Type type{meta.dtype, without_leading_ones(meta.shape)};
      const bool related = std::any_of(asked.begin(), asked.end(), [&](const Type& other) {
        return other.first == type.first && (repetition_factor(type.second, other.second) != 0 ||
                                             repetition_factor(other.second, type.second) != 0);
      });
      lists.push_back(related ? &values_[type] : nullptr);
    }
    for (size_t e = 0; e < log.events.size(); ++e) {
      const Event event = log.events[e];
      if (event.kind == EventKind::state) continue;
      const Slot* slots = log.slots.of_event(event.first_slot);
      for (uint32_t s = 0; s < event.slot_count; ++s) {
        const Slot& slot = slots[s];
        if (slot.meta < lists.size() && lists[slot.meta] && has_value(slot) && slot.value.h != 0)
          lists[slot.meta]->push_back(slot.value.h);
      }
    }
  }
  for (auto& [type, values] : values_) {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
  }
}

bool Broadcasts::holds(const Meta& meta, uint64_t h) const {
  const std::vector<int64_t> shape = without_leading_ones(meta.shape);
  if (h == 0 || shape.empty()) return false;
  for (auto at = values_.lower_bound({meta.dtype, {}});
       at != values_.end() && at->first.first == meta.dtype; ++at) {
    const auto& [type, values] = *at;
    if (const uint64_t factor = repetition_factor(shape, type.second))
      if (std::binary_search(values.begin(), values.end(), h * factor)) return true;
    if (const uint64_t factor = repetition_factor(type.second, shape)) {
      auto [repeated, fresh] = repeated_.try_emplace({type, shape});
      if (fresh)
        for (const uint64_t value : values) repeated->second.insert(value * factor);
      if (repeated->second.contains(h)) return true;
    }
  }
  return false;
}

}  // namespace opguard
