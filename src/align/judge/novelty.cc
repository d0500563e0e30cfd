// The questions of by_name(), in their order; the first that holds says that the value is known.
//
//   no fingerprint                          known: nothing can be said
//   zeros                                   known (zeros-are-known)
//   made by a discounted operator           known
//   the other run holds the name            known (known-by-name)
//   its elements are the other's as a set   known (compare_steps.h)
//   repeated, listed, a share of a rank     known (repeated-value, listed-elements)
//
// A counterpart comes before all of these. Where it has the same dtype and shape, it alone decides.
// A count of 48 beside one of 24 differs, even if the other run has a 48 somewhere.
//
// The cost: a look-up in the other run's index. Compositions are made when first asked for.
#include "align/judge/novelty.h"

#include <algorithm>
#include <string>
#include <utility>

#include "align/pair/slot_pairs.h"
#include "align/values/digests.h"
#include "operators/operators.h"

namespace opguard {

Novelty::Novelty(const ValueIndex& mine, const ValueIndex& other, FlowOptions options)
    : mine_(mine), other_(other), options_(std::move(options)) {
  if (!discounting()) return;
  // In order of completion, so that a layout made from another layout counts as well.
  for (size_t p = 0; p < mine.run().processes.size(); ++p) {
    const ProcessLog& log = mine.run().processes[p];
    for (size_t e = 0; e < log.events.size(); ++e) {
      EventRef ref{int32_t(p), uint32_t(e)};
      if (!options_.discounted(ref)) continue;
      const EventSlots slots = log.slots_of(log.events[e]);
      for (const Slot& slot : slots)
        if (slot.kind != SlotKind::in && made_of_known({ref, slots.index_of(slot)}))
          relaid_.insert(value_key(log, slot));
    }
  }
}

// Whether an event's result holds nothing but what both runs know.
bool Novelty::made_of_known(const SlotRef& made) const {
  auto known_parts = [&](const SlotRef& ref) {
    Memory::Parts parts = mine_.memory().parts(made.event, mine_.slot(ref));
    return relaid_parts(mine_.slot(ref), parts) && !any_novel(parts);
  };
  if (views_larger_input(made)) return known_parts(made);
  const EventSlots slots = mine_.log(made.event).slots_of(mine_.event(made.event));
  for (const Slot& slot : slots) {
    const SlotRef at{made.event, slots.index_of(slot)};
    if (slot.kind == SlotKind::in && novel(made.event, slot) && !written_over(at) &&
        !known_parts(at))
      return false;
  }
  return true;
}

std::string_view Novelty::callee(const EventRef& ref) const {
  const ProcessLog& log = mine_.log(ref);
  auto location = log.locations.find(std::string(mine_.boundary(ref)));
  return location == log.locations.end() ? std::string_view() : location->second.callee;
}

bool Novelty::any_novel(const Memory::Parts& parts) const {
  return std::any_of(parts.left.begin(), parts.left.end(),
                     [&](const SlotRef& part) { return novel(part.event, mine_.slot(part)); });
}

bool Novelty::views_larger_input(const SlotRef& made) const {
  const Slot& result = mine_.slot(made);
  if (result.kind != SlotKind::out || !result.address || !result.size_bytes) return false;
  const ProcessLog& log = mine_.log(made.event);
  const Event& event = mine_.event(made.event);
  for (const Slot& input : log.slots_of(event)) {
    if (input.storage != 0 && result.storage != 0 && input.storage != result.storage) continue;
    if (input.kind == SlotKind::in && input.address <= result.address &&
        input.address + input.size_bytes >= result.address + result.size_bytes &&
        input.size_bytes > result.size_bytes)
      return true;
  }
  return false;
}

Standing Novelty::by_name(const EventRef& event, const Slot& slot) const {
  if (!has_value(slot)) return {};
  if (on(Heuristic::zeros_are_known) && slot.value == Fingerprint{})
    return {false, Heuristic::zeros_are_known};
  const ValueKey key = value_key(mine_.log(event), slot);
  if (relaid_.contains(key)) return {};
  if (on(Heuristic::known_by_name) && other_.holds(key)) return {false, Heuristic::known_by_name};
  if (options_.same_elements && options_.same_elements->contains(key)) return {};
  const std::optional<Heuristic> by = put_together(event, slot);
  return {!by, by};
}

std::optional<Standing> Novelty::beside_counterpart(const SlotRef& ref) const {
  if (!options_.counterparts) return {};
  const std::optional<SlotRef> other = options_.counterparts->of(options_.side, ref);
  if (!other) return {};
  const Slot mine = mine_.slot(ref), theirs = other_.slot(*other);
  if (garbage_in_one_run(mine, theirs)) return Standing{true};
  if (!has_value(mine) || !has_value(theirs)) return {};
  const ProcessLog &log = mine_.log(ref.event), &other_log = other_.log(other->event);
  const ValueKey key = value_key(log, mine);
  if (key == value_key(other_log, theirs)) return Standing{};
  if (log.metas[mine.meta] != other_log.metas[theirs.meta]) return {};
  if (relaid_.contains(key)) return Standing{};
  return Standing{true};
}

Standing Novelty::standing(const SlotRef& ref) const {
  if (const std::optional<Standing> beside = beside_counterpart(ref)) return *beside;
  return by_name(ref.event, mine_.slot(ref));
}

// The other run's values, repeated over a dimension before they are used, or left to broadcasting.
// Or a list of them in one buffer, or a share of it on each rank.
std::optional<Heuristic> Novelty::put_together(const EventRef& event, const Slot& slot) const {
  const ProcessLog& log = mine_.log(event);
  if (slot.meta >= log.metas.size() || !has_elements(slot)) return {};
  const Meta& meta = log.metas[slot.meta];
  const Compositions& theirs = other_.compositions(mine_.run());
  if (on(Heuristic::repeated_value) && theirs.holds_repeated(meta, slot.digest))
    return Heuristic::repeated_value;
  if (!on(Heuristic::listed_elements)) return {};
  if (theirs.holds_list(meta.dtype, slot.digest)) return Heuristic::listed_elements;
  const std::optional<uint64_t> whole = mine_.rank_sums().of(event, slot);
  if (whole && *whole != 0 &&
      (theirs.holds_list(meta.dtype, *whole) || theirs.holds_elements(meta.dtype, *whole)))
    return Heuristic::listed_elements;
  return {};
}

// What is copied over is gone, but not its shape: where the other run's target has another one, its
// maker counts.
//   a  q = Linear(6, 12).weight      b  q = Linear(6, 10).weight      q.copy_(randn(q.shape))
bool Novelty::reshaped(const SlotRef& ref) const {
  if (!options_.counterparts) return false;
  const std::optional<SlotRef> other = options_.counterparts->of(options_.side, ref);
  return other && !same_shape(mine_.log(ref.event), mine_.slot(ref), other_.log(other->event),
                              other_.slot(*other));
}

bool Novelty::written_over(const SlotRef& at) const {
  const EventRef& ref = at.event;
  const Slot slot = mine_.slot(at);
  const ProcessLog& log = mine_.log(ref);
  if (slot.kind != SlotKind::in || !overwrites(callee(ref), log.text(slot.name)) || reshaped(at))
    return false;
  const EventSlots slots = log.slots_of(mine_.event(ref));
  return std::any_of(slots.begin(), slots.end(), [&](const Slot& source) {
    return source.kind == SlotKind::in && source.name != slot.name &&
           log.metas[source.meta].dtype == log.metas[slot.meta].dtype;
  });
}

bool Novelty::relaid_parts(const Slot& wanted, const Memory::Parts& parts) const {
  if (!parts.complete) return false;
  return std::none_of(parts.left.begin(), parts.left.end(), [&](const SlotRef& part) {
    const Slot& left = mine_.slot(part);
    return left.address == wanted.address && left.size_bytes == wanted.size_bytes;
  });
}

}  // namespace opguard
