// One map a process, from a value's name to the events that read it. It is by value and not by
// memory: a view, or a copy that another operator made, leads to the same readers.
//
//   readers      h's value -> {act, the residual's +}
//   nodes        act's event -> {GeluBackward0's event}
//   handed_on    gradients that some node or leaf was given
//
// Counterexample: masks that are all true have one name. Who must know which of them was read looks
// at the memory as well (flow_harmless.cc).
#include "align/tolerance/forward_readers.h"

namespace opguard {
namespace {

const std::vector<uint32_t> kNoReaders;

}  // namespace

const ForwardReaders::Process& ForwardReaders::process(int32_t number) const {
  const auto [it, fresh] = known_.try_emplace(number);
  if (!fresh) return it->second;
  const ProcessLog& log = run_.processes[static_cast<size_t>(number)];
  for (uint32_t i = 0; i < log.events.size(); ++i) {
    const Event event = log.events[i];
    if (event.kind == EventKind::node || event.kind == EventKind::accumulate) {
      if (event.kind == EventKind::node && event.forward != kNone)
        it->second.nodes[event.forward].push_back(i);
      const EventSlots slots = log.slots_of(event);
      for (const Slot& slot : slots)
        if (slot.kind == SlotKind::in && has_value(slot))
          it->second.handed_on.insert(value_key(log, slot));
    } else if (event.kind == EventKind::op && event.phase == Phase::forward) {
      const EventSlots slots = log.slots_of(event);
      for (const Slot& slot : slots)
        if (slot.kind == SlotKind::in && has_value(slot))
          it->second.readers[value_key(log, slot)].push_back(i);
    }
  }
  return it->second;
}

const std::vector<uint32_t>& ForwardReaders::of(int32_t number, const ValueKey& key) const {
  const auto& readers = process(number).readers;
  const auto known = readers.find(key);
  return known == readers.end() ? kNoReaders : known->second;
}

EventRef ForwardReaders::first_of(const SlotRef& value) const {
  const ProcessLog& log = run_.processes[static_cast<size_t>(value.event.process)];
  const Slot slot = log.slots[value.slot];
  if (!has_value(slot)) return {};
  const std::vector<uint32_t>& readers = of(value.event.process, value_key(log, slot));
  for (const uint32_t reader : readers)
    if (log.events[reader].flags & kInGraph) return {value.event.process, reader};
  return readers.empty() ? EventRef{} : EventRef{value.event.process, readers.front()};
}

const std::vector<uint32_t>& ForwardReaders::nodes(int32_t number, uint32_t forward) const {
  const auto& nodes = process(number).nodes;
  const auto known = nodes.find(forward);
  return known == nodes.end() ? kNoReaders : known->second;
}

bool ForwardReaders::is_handed_on(int32_t number, const ValueKey& key) const {
  return process(number).handed_on.contains(key);
}

}  // namespace opguard
