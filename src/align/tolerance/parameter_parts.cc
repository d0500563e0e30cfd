// One pass in the order of events. A value is a part if an operator that only moves bytes made it
// of parts alone.
//
//   <parameters>    up                      a part
//   select          up[2]                   of a part: a part
//   index           up[ids]                 ids is a tensor of its own: none
//   copy_           buffer.copy_(up[2])     writes over what was another's: none
//
// Values have names, not places. So what holds the same bytes as a part is taken for one.
#include "align/tolerance/parameter_parts.h"

#include <unordered_set>

#include "align/values/value_index.h"
#include "operators/operators.h"

namespace opguard {

std::vector<SlotRef> parameter_parts(const Run& run, int32_t process) {
  std::vector<SlotRef> found;
  if (process < 0) return found;
  const ProcessLog& log = run.processes[static_cast<size_t>(process)];
  std::unordered_set<ValueKey, ValueKeyHash> parts;
  bool read = false;
  for (uint32_t i = 0; i < log.events.size(); ++i) {
    const Event event = log.events[i];
    if (event.kind == EventKind::state) {
      if (read || log.text(event.boundary) != "<parameters>") continue;
      read = true;
      const EventSlots slots = log.slots_of(event);
      for (const Slot& slot : slots)
        if (has_value(slot)) parts.insert(value_key(log, slot));
    }
    if (event.kind != EventKind::op || parts.empty() || !moves_bytes(log.callee(event))) continue;
    bool of_parts = false, of_others = false;
    const EventSlots slots = log.slots_of(event);
    for (const Slot& slot : slots)
      if (slot.kind != SlotKind::out)
        (slot.kind == SlotKind::in && has_value(slot) && parts.contains(value_key(log, slot))
             ? of_parts
             : of_others) = true;
    if (!of_parts || of_others) continue;
    for (const Slot& slot : slots)
      if (slot.kind == SlotKind::out && has_value(slot)) {
        parts.insert(value_key(log, slot));
        found.push_back({{process, i}, slots.index_of(slot)});
      }
  }
  return found;
}

}  // namespace opguard
