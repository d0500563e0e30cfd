// Of align/tolerance/flow_back.h: gradients that nobody made, or that several nodes hand on.
#include "align/tolerance/flow_back.h"

#include <algorithm>

namespace opguard {
namespace {

// Events before a leaf's gradient among which its parts are looked for.
constexpr uint32_t kMostSummands = 256;

}  // namespace

// What autograd may have added up to a gradient that nobody made.
std::vector<SlotRef> FlowBack::summands(const EventRef& node, const Slot& gradient) const {
  std::vector<SlotRef> found;
  const ProcessLog& log = values_.log(node);
  const Event event = log.events[node.event];
  if (event.kind == EventKind::accumulate) {
    // Of which leaf is not told: gradients of its form that were handed to nobody.
    const uint32_t first = node.event > kMostSummands ? node.event - kMostSummands : 0;
    for (uint32_t other = first; other < node.event; ++other) {
      if (log.events.kind(other) != EventKind::node) continue;
      const EventSlots slots = log.slots_of(log.events[other]);
      for (const Slot& slot : slots)
        if (slot.kind == SlotKind::out && slot.meta == gradient.meta && has_value(slot) &&
            !readers_.is_handed_on(node.process, value_key(log, slot)))
          found.push_back({{node.process, other}, slots.index_of(slot)});
    }
    return found;
  }
  if (event.kind != EventKind::node || event.forward == kNone) return found;
  const EventSlots made = log.slots_of(log.events[event.forward]);
  for (const Slot& result : made) {
    if (result.kind == SlotKind::in || !has_value(result)) continue;
    for (const uint32_t reader : readers_.of(node.process, value_key(log, result))) {
      for (const uint32_t other : readers_.nodes(node.process, reader)) {
        if (other >= node.event) continue;
        const EventSlots slots = log.slots_of(log.events[other]);
        for (const Slot& slot : slots)
          if (slot.kind == SlotKind::out && slot.meta == gradient.meta && has_value(slot))
            found.push_back({{node.process, other}, slots.index_of(slot)});
      }
    }
  }
  return found;
}

// A gradient may be handed on as it is by several nodes, in the same memory. The last of them that
// handed it to this node, if it is not what belongs there; else kNone.
uint32_t FlowBack::handed_on(const SlotRef& read, const ValueKey& key) const {
  const ProcessLog& log = values_.log(read.event);
  if (log.events.kind(read.event.event) != EventKind::node) return kNone;
  const uint32_t first = read.event.event > kMostSummands ? read.event.event - kMostSummands : 0;
  for (uint32_t other = read.event.event; other-- > first;) {
    if (log.events.kind(other) != EventKind::node) continue;
    const EventSlots slots = log.slots_of(log.events[other]);
    for (const Slot& slot : slots) {
      if (slot.kind != SlotKind::out || !has_value(slot) || value_key(log, slot) != key) continue;
      const auto known = at_.find(slot_key(read.event.process, slots.index_of(slot)));
      const bool is_other =
          known != at_.end() && comparison_.tensors[known->second].state == TensorState::beyond;
      return is_other ? known->second : kNone;
    }
  }
  return kNone;
}

}  // namespace opguard
