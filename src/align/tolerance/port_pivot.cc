#include "align/tolerance/port_pivot.h"

#include <algorithm>
#include <vector>

namespace opguard {
namespace {

const ProcessLog& log_with(const Run& run, const EventRef& ref) {
  return run.processes[static_cast<size_t>(ref.process)];
}

bool is_differentiated(const Event& event) {
  return event.kind != EventKind::op || (event.flags & kInGraph) != 0;
}

}  // namespace

PortPivot::PortPivot(const Run& reference, const Run& candidate, const Comparison& comparison)
    : a_(reference), b_(candidate), comparison_(comparison) {
  const auto know = [&](const SlotRef& at) {
    const ProcessLog& log = log_with(b_, at.event);
    const Slot slot = log.slots[at.slot];
    if (has_value(slot) && slot.value != Fingerprint{}) known_.insert(value_key(log, slot));
  };
  for (const SlotRef& at : comparison.port.known) know(at);
  for (const ComparedTensor& tensor : comparison.tensors) {
    if (tensor.state != TensorState::equal) continue;
    paired_.insert(tensor.a.at.slot);
    for (const SlotRef& at : tensor.b) {
      know(at);
      const ProcessLog& log = log_with(b_, at.event);
      partners_.try_emplace(value_key(log, log.slots[at.slot]), tensor.a.at);
    }
  }
}

// The reference's first operator that reads the value and makes what the candidate does not have.
EventRef PortPivot::reads_too(const ValueKey& key) const {
  const auto partner = partners_.find(key);
  if (partner == partners_.end()) return {};
  const SlotRef& made = partner->second;
  const ProcessLog& log = log_with(a_, made.event);
  const ValueKey theirs = value_key(log, log.slots[made.slot]);
  for (uint32_t i = made.event.event; i < log.events.size(); ++i) {
    const Event event = log.events[i];
    if (event.kind != EventKind::op || !log.locations.contains(log.text(event.boundary))) continue;
    bool reads = false, other = false;
    const EventSlots slots = log.slots_of(event);
    for (const Slot& slot : slots) {
      if (slot.kind == SlotKind::in)
        reads |= has_value(slot) && value_key(log, slot) == theirs;
      else
        other |= !paired_.contains(slots.index_of(slot));
    }
    if (reads && other) return {made.event.process, i};
  }
  return {};
}

PortPlace PortPivot::of(const ToleranceOrigin& origin) const {
  std::vector<EventRef> events = origin.region;
  const EventRef own = comparison_.tensors[origin.tensor].b.front().event;
  if (std::find(events.begin(), events.end(), own) == events.end()) events.push_back(own);
  std::sort(events.begin(), events.end(),
            [](const EventRef& x, const EventRef& y) { return x.event < y.event; });
  PortPlace found;
  // Constants, as masks, are made otherwise in every program. What autograd goes through tells.
  const bool of_graph = std::any_of(events.begin(), events.end(), [&](const EventRef& ref) {
    return is_differentiated(log_with(b_, ref).events[ref.event]);
  });
  std::unordered_set<ValueKey, ValueKeyHash> other;  // made of what is known, and not known
  for (const EventRef& ref : events) {
    const ProcessLog& log = log_with(b_, ref);
    const Event event = log.events[ref.event];
    if (of_graph && !is_differentiated(event)) continue;
    bool reads_known = false, reads_other = false;
    ValueKey read;
    const auto look = [&](const Event& of) {
      const EventSlots slots = log.slots_of(of);
      for (const Slot& slot : slots) {
        if (slot.kind != SlotKind::in || !has_value(slot)) continue;
        const ValueKey key = value_key(log, slot);
        reads_other |= other.contains(key);
        if (known_.contains(key)) {
          // A parameter is no value on its way.
          if (!reads_known || (slot.flags & kParameter) == 0) read = key;
          reads_known = true;
        }
      }
    };
    look(event);
    if (event.kind == EventKind::node && event.forward != kNone) look(log.events[event.forward]);
    if (!reads_known && !reads_other) continue;
    const EventSlots slots = log.slots_of(event);
    for (const Slot& slot : slots)
      if (slot.kind != SlotKind::in && has_value(slot))
        if (const ValueKey key = value_key(log, slot); !known_.contains(key)) other.insert(key);
    const bool has_place = event.kind != EventKind::state && event.kind != EventKind::accumulate &&
                           log.locations.contains(log.text(event.boundary));
    if (reads_other || !has_place) continue;
    found.b = ref;
    found.a = reads_too(read);
  }
  return found;
}

}  // namespace opguard
