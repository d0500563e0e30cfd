#include "align/slot_pairs.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

namespace opguard {
namespace {

std::vector<const Slot*> in_place(const ProcessLog& log, const Event& event) {
  std::vector<const Slot*> slots;
  for (uint64_t i = event.first_slot; i < event.first_slot + event.slot_count; ++i)
    slots.push_back(&log.slots[i]);
  std::sort(slots.begin(), slots.end(), [](const Slot* x, const Slot* y) {
    return std::tie(x->kind, x->index) < std::tie(y->kind, y->index);
  });
  return slots;
}

std::vector<SlotPair> pair_by_place(const std::vector<const Slot*>& a,
                                    const std::vector<const Slot*>& b) {
  std::vector<SlotPair> pairs;
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    SlotPair pair{i < a.size() ? a[i] : nullptr, j < b.size() ? b[j] : nullptr};
    if (pair.a && pair.b) {
      auto x = std::tie(pair.a->kind, pair.a->index), y = std::tie(pair.b->kind, pair.b->index);
      if (x < y)
        pair.b = nullptr;
      else if (y < x)
        pair.a = nullptr;
    }
    i += pair.a != nullptr;
    j += pair.b != nullptr;
    pairs.push_back(pair);
  }
  return pairs;
}

// "state:layers.0.weight.exp_avg" -> "state.exp_avg", "grad3" -> "grad".
std::string like(const std::string& name) {
  std::string what = name.substr(0, name.find_first_of(":0123456789"));
  size_t dot = name.rfind('.');
  return what == "state" && dot != std::string::npos ? what + name.substr(dot) : what;
}

std::vector<SlotPair> pair_by_name(const ProcessLog& log_a, const std::vector<const Slot*>& a,
                                   const ProcessLog& log_b, const std::vector<const Slot*>& b) {
  std::map<std::pair<SlotKind, std::string>, const Slot*> named;
  for (const Slot* slot : b) named.try_emplace({slot->kind, log_b.text(slot->name)}, slot);
  std::vector<SlotPair> pairs;
  for (const Slot* slot : a) {
    auto found = named.find({slot->kind, log_a.text(slot->name)});
    pairs.push_back({slot, found == named.end() ? nullptr : found->second});
    if (found != named.end()) named.erase(found);
  }
  std::map<std::pair<SlotKind, std::string>, std::vector<const Slot*>> left;
  for (const Slot* slot : b)
    if (auto found = named.find({slot->kind, log_b.text(slot->name)});
        found != named.end() && found->second == slot)
      left[{slot->kind, like(found->first.second)}].push_back(slot);
  for (SlotPair& pair : pairs) {
    if (pair.b) continue;
    auto found = left.find({pair.a->kind, like(log_a.text(pair.a->name))});
    if (found == left.end() || found->second.empty()) continue;
    pair.b = found->second.front();
    found->second.erase(found->second.begin());
  }
  for (const auto& [group, slots] : left)
    for (const Slot* slot : slots) pairs.push_back({nullptr, slot});
  return pairs;
}

}  // namespace

bool slots_by_name(const Event& event) { return event.kind == EventKind::optimizer; }

std::vector<SlotPair> pair_slots(const ProcessLog& a, const Event& ea, const ProcessLog& b,
                                 const Event& eb) {
  const auto slots_a = in_place(a, ea), slots_b = in_place(b, eb);
  return slots_by_name(ea) && slots_by_name(eb) ? pair_by_name(a, slots_a, b, slots_b)
                                                : pair_by_place(slots_a, slots_b);
}

}  // namespace opguard
