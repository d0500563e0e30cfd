#include "align/values/counterparts.h"

#include "align/pair/slot_pairs.h"

namespace opguard {

const Counterparts::Places& Counterparts::places(const EventRef& a, const EventRef& b) const {
  auto [entry, fresh] = places_.try_emplace(uint64_t(a.process) << 32 | a.event);
  if (!fresh) return entry->second;
  for (const SlotPair& pair : pair_slots(timeline_.log(0, a), timeline_.event(0, a),
                                         timeline_.log(1, b), timeline_.event(1, b)))
    if (pair.a && pair.b) entry->second.emplace_back(pair.at_a, pair.at_b);
  return entry->second;
}

std::optional<SlotRef> Counterparts::of(int side, const SlotRef& slot) const {
  const EventRef other = timeline_.partner(side, slot.event);
  if (other.process < 0) return {};
  for (const auto& [at_a, at_b] : side == 0 ? places(slot.event, other) : places(other, slot.event))
    if ((side == 0 ? at_a : at_b) == slot.slot) return SlotRef{other, side == 0 ? at_b : at_a};
  return {};
}

}  // namespace opguard
