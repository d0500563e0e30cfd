// The slots of a pair of events are paired once (pair/slot_pairs.h), and kept for both directions.
//
//   a's event 12   in0 in1 out0        places_[12][0]  in0->in0'  out0->out0'
//   b's event 15   in0'    out0'       places_[12][1]  in0'->in0  out0'->out0
//
// What has no partner, as in1 here, has no entry. A question is a binary search among these. The
// key is the event of a, whichever side asks, so both sides share one entry.
#include "align/values/counterparts.h"

#include <algorithm>

#include "align/pair/slot_pairs.h"

namespace opguard {

const Counterparts::Places& Counterparts::places(const EventRef& a, const EventRef& b) const {
  auto [entry, fresh] = places_.try_emplace(uint64_t(a.process) << 32 | a.event);
  if (!fresh) return entry->second;
  for (const SlotPair& pair : pair_slots(timeline_.log(0, a), timeline_.event(0, a),
                                         timeline_.log(1, b), timeline_.event(1, b)))
    if (pair.a && pair.b) {
      entry->second[0].emplace_back(pair.at_a, pair.at_b);
      entry->second[1].emplace_back(pair.at_b, pair.at_a);
    }
  for (auto& side : entry->second) std::sort(side.begin(), side.end());
  return entry->second;
}

std::optional<SlotRef> Counterparts::of(int side, const SlotRef& slot) const {
  const EventRef other = timeline_.partner(side, slot.event);
  if (other.process < 0) return {};
  const auto& of = (side == 0 ? places(slot.event, other) : places(other, slot.event))[side];
  const auto at = std::lower_bound(of.begin(), of.end(), std::pair(slot.slot, uint64_t{0}));
  if (at == of.end() || at->first != slot.slot) return {};
  return SlotRef{other, at->second};
}

}  // namespace opguard
