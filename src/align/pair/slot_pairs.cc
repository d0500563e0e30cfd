// By place both sides are walked as in a merge of two sorted lists. By name three passes are made.
//
//   a   grad:head.weight  grad:wte.weight      1. equal names          head.weight
//   b   grad:emb.weight   grad:head.weight     2. b's rest, by like()  "grad": emb.weight
//                                              3. a's rest takes it    wte with emb
//
// The cost: n log n in the names of an optimizer's event. Of others linear, if slots are in order.
#include "align/pair/slot_pairs.h"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <string>
#include <tuple>

namespace opguard {
namespace {

using Places = PairedSlots::Places;
constexpr uint32_t kNobody = PairedSlots::kNobody;

auto kind_and_place(const Slot& slot) { return std::tie(slot.kind, slot.index); }

// The places of an event's slots, by kind and place.
std::vector<uint32_t> in_order(const EventSlots& slots) {
  std::vector<uint32_t> order(slots.size());
  std::iota(order.begin(), order.end(), 0u);
  auto before = [&](uint32_t x, uint32_t y) {
    return kind_and_place(slots[x]) < kind_and_place(slots[y]);
  };
  if (!std::is_sorted(order.begin(), order.end(), before))
    std::sort(order.begin(), order.end(), before);
  return order;
}

std::vector<Places> pair_by_place(const EventSlots& a, const EventSlots& b) {
  const std::vector<uint32_t> order_a = in_order(a), order_b = in_order(b);
  std::vector<Places> pairs;
  pairs.reserve(std::max(a.size(), b.size()));
  for (size_t i = 0, j = 0; i < order_a.size() || j < order_b.size();) {
    bool has_a = i < order_a.size(), has_b = j < order_b.size();
    if (has_a && has_b) {
      const auto x = kind_and_place(a[order_a[i]]), y = kind_and_place(b[order_b[j]]);
      has_a = !(y < x);
      has_b = !(x < y);
    }
    pairs.push_back({has_a ? order_a[i++] : kNobody, has_b ? order_b[j++] : kNobody});
  }
  return pairs;
}

// "state:layers.0.weight.exp_avg" -> "state.exp_avg", "grad3" -> "grad".
std::string like(const std::string& name) {
  std::string what = name.substr(0, name.find_first_of(":0123456789"));
  size_t dot = name.rfind('.');
  return what == "state" && dot != std::string::npos ? what + name.substr(dot) : what;
}

std::vector<Places> pair_by_name(const ProcessLog& log_a, const EventSlots& a,
                                 const ProcessLog& log_b, const EventSlots& b) {
  const std::vector<uint32_t> order_a = in_order(a), order_b = in_order(b);
  std::map<std::pair<SlotKind, std::string>, uint32_t> named;
  for (uint32_t at : order_b) named.try_emplace({b[at].kind, log_b.text(b[at].name)}, at);
  std::vector<Places> pairs;
  for (uint32_t at : order_a) {
    auto found = named.find({a[at].kind, log_a.text(a[at].name)});
    pairs.push_back({at, found == named.end() ? kNobody : found->second});
    if (found != named.end()) named.erase(found);
  }
  std::map<std::pair<SlotKind, std::string>, std::deque<uint32_t>> left;
  for (uint32_t at : order_b)
    if (auto found = named.find({b[at].kind, log_b.text(b[at].name)});
        found != named.end() && found->second == at)
      left[{b[at].kind, like(found->first.second)}].push_back(at);
  for (Places& pair : pairs) {
    if (pair[1] != kNobody) continue;
    const Slot& slot = a[pair[0]];
    auto found = left.find({slot.kind, like(log_a.text(slot.name))});
    if (found == left.end() || found->second.empty()) continue;
    pair[1] = found->second.front();
    found->second.pop_front();
  }
  for (const auto& [group, slots] : left)
    for (uint32_t at : slots) pairs.push_back({kNobody, at});
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

PairedSlots::PairedSlots(const ProcessLog& a, const Event& ea, const ProcessLog& b, const Event& eb)
    : of_a_(a.slots_of(ea)),
      of_b_(b.slots_of(eb)),
      places_(slots_by_name(ea) && slots_by_name(eb) ? pair_by_name(a, of_a_, b, of_b_)
                                                     : pair_by_place(of_a_, of_b_)) {}

SlotPair PairedSlots::pair(const Places& places) const {
  SlotPair pair;
  auto read = [](const EventSlots& slots, uint32_t place, std::optional<Slot>& slot, uint64_t& at) {
    if (place == kNobody) return;
    slot = slots[place];
    at = slots.index_of(slots[place]);
  };
  read(of_a_, places[0], pair.a, pair.at_a);
  read(of_b_, places[1], pair.b, pair.at_b);
  return pair;
}

}  // namespace opguard
