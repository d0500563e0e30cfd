#include "align/broadcast.h"

#include <algorithm>
#include <set>

#include "align/value_flow.h"

namespace opguard {
namespace {

// og1's g of dimension d, counted from the last.
uint64_t dimension_factor(size_t d) {
  uint64_t z = (uint64_t(d) + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return ((z ^ z >> 31) & ~uint64_t(7)) | (d % 2 == 0 ? 5 : 3);
}

std::vector<int64_t> without_leading_ones(const std::vector<int64_t>& shape) {
  auto first = std::find_if(shape.begin(), shape.end(), [](int64_t n) { return n != 1; });
  return {first, shape.end()};
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
    const uint64_t g = dimension_factor(d);
    uint64_t sum = 0;
    for (int64_t i = 0; i < want; ++i) sum = sum * g + 1;
    factor *= sum;
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
