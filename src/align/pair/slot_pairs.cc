#include "align/pair/slot_pairs.h"

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <tuple>

namespace opguard {
namespace {

// A slot and its index in its log. Not a copy: an event may have 65,535.
struct Placed {
  const Slot* slot;
  uint64_t at;
};

std::vector<Placed> in_place(const EventSlots& of_event, uint64_t first) {
  std::vector<Placed> slots;
  slots.reserve(of_event.size());
  for (uint32_t i = 0; i < of_event.size(); ++i) slots.push_back({&of_event[i], first + i});
  auto by_place = [](const Placed& x, const Placed& y) {
    return std::tie(x.slot->kind, x.slot->index) < std::tie(y.slot->kind, y.slot->index);
  };
  if (!std::is_sorted(slots.begin(), slots.end(), by_place))
    std::sort(slots.begin(), slots.end(), by_place);
  return slots;
}

SlotPair pair_of(const Placed* a, const Placed* b) {
  SlotPair pair;
  if (a) pair.a = *a->slot, pair.at_a = a->at;
  if (b) pair.b = *b->slot, pair.at_b = b->at;
  return pair;
}

std::vector<SlotPair> pair_by_place(const std::vector<Placed>& a, const std::vector<Placed>& b) {
  std::vector<SlotPair> pairs;
  pairs.reserve(std::max(a.size(), b.size()));
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    const Placed *x = i < a.size() ? &a[i] : nullptr, *y = j < b.size() ? &b[j] : nullptr;
    if (x && y) {
      auto place_x = std::tie(x->slot->kind, x->slot->index),
           place_y = std::tie(y->slot->kind, y->slot->index);
      if (place_x < place_y)
        y = nullptr;
      else if (place_y < place_x)
        x = nullptr;
    }
    i += x != nullptr;
    j += y != nullptr;
    pairs.push_back(pair_of(x, y));
  }
  return pairs;
}

// "state:layers.0.weight.exp_avg" -> "state.exp_avg", "grad3" -> "grad".
std::string like(const std::string& name) {
  std::string what = name.substr(0, name.find_first_of(":0123456789"));
  size_t dot = name.rfind('.');
  return what == "state" && dot != std::string::npos ? what + name.substr(dot) : what;
}

std::vector<SlotPair> pair_by_name(const ProcessLog& log_a, const std::vector<Placed>& a,
                                   const ProcessLog& log_b, const std::vector<Placed>& b) {
  std::map<std::pair<SlotKind, std::string>, const Placed*> named;
  for (const Placed& placed : b)
    named.try_emplace({placed.slot->kind, log_b.text(placed.slot->name)}, &placed);
  std::vector<SlotPair> pairs;
  for (const Placed& placed : a) {
    auto found = named.find({placed.slot->kind, log_a.text(placed.slot->name)});
    pairs.push_back(pair_of(&placed, found == named.end() ? nullptr : found->second));
    if (found != named.end()) named.erase(found);
  }
  std::map<std::pair<SlotKind, std::string>, std::deque<const Placed*>> left;
  for (const Placed& placed : b)
    if (auto found = named.find({placed.slot->kind, log_b.text(placed.slot->name)});
        found != named.end() && found->second == &placed)
      left[{placed.slot->kind, like(found->first.second)}].push_back(&placed);
  for (SlotPair& pair : pairs) {
    if (pair.b) continue;
    auto found = left.find({pair.a->kind, like(log_a.text(pair.a->name))});
    if (found == left.end() || found->second.empty()) continue;
    pair.b = *found->second.front()->slot;
    pair.at_b = found->second.front()->at;
    found->second.pop_front();
  }
  for (const auto& [group, slots] : left)
    for (const Placed* placed : slots) pairs.push_back(pair_of(nullptr, placed));
  return pairs;
}

}  // namespace

bool slots_by_name(const Event& event) {
  return event.kind == EventKind::optimizer || event.kind == EventKind::state;
}

bool same_shape(const ProcessLog& a, const Slot& x, const ProcessLog& b, const Slot& y) {
  if (x.meta == kNone || y.meta == kNone) return x.meta == y.meta;
  const Meta &m = a.metas[x.meta], &n = b.metas[y.meta];
  // Not the device: the same bytes on cuda:0 and cuda:1 are the same value.
  return m.dtype == n.dtype && m.shape == n.shape;
}

bool garbage_in_one_run(const Slot& x, const Slot& y) {
  if ((x.flags | y.flags) & kUnreadable) return false;
  const bool garbage = x.flags & kUninitialised;
  if (garbage == bool(y.flags & kUninitialised)) return false;
  return (garbage ? y : x).value != Fingerprint{};
}

bool same_bytes(const Slot& x, const Slot& y) {
  return x.value == y.value && x.flat == y.flat &&
         (!(x.flags & y.flags & kMask) || x.pattern == y.pattern);
}

std::vector<SlotPair> pair_slots(const ProcessLog& a, const Event& ea, const ProcessLog& b,
                                 const Event& eb) {
  const EventSlots of_a = a.slots.of_event(ea), of_b = b.slots.of_event(eb);
  const auto slots_a = in_place(of_a, ea.first_slot), slots_b = in_place(of_b, eb.first_slot);
  return slots_by_name(ea) && slots_by_name(eb) ? pair_by_name(a, slots_a, b, slots_b)
                                                : pair_by_place(slots_a, slots_b);
}

}  // namespace opguard
