// All of these go over events one by one. They are asked once for a finding, and no index is worth
// it.
//
// Values are compared by fingerprints, memory by addresses. Counterexample: a fingerprint of zero
// bits is no value. Zeros are made everywhere, and following them leads anywhere.
#include "invariants/places/event_search.h"

#include <algorithm>

namespace opguard {

// From the log's beginning: as many looks as there are events up to the step.
EventRange events_of_step(const ProcessLog& log, uint32_t step) {
  EventRange range;
  const uint64_t size = log.events.size();
  while (range.first < size && log.events.step(range.first) < step) ++range.first;
  range.last = range.first;
  while (range.last < size && log.events.step(range.last) <= step) ++range.last;
  return range;
}

std::optional<Slot> find_slot(const ProcessLog& log, const Event& event,
                              const std::function<bool(const Slot&)>& admits) {
  const EventSlots slots = log.slots_of(event);
  for (const Slot& slot : slots)
    if (admits(slot)) return slot;
  return std::nullopt;
}

bool names_tensor(std::string_view slot_name, std::string_view name) {
  if (!slot_name.ends_with(name)) return false;
  // Behind a dot or a colon, so "fc.weight" is not found in "arg0.myfc.weight".
  const size_t rest = slot_name.size() - name.size();
  return rest == 0 || slot_name[rest - 1] == '.' || slot_name[rest - 1] == ':';
}

bool is_value(const Slot& slot) {
  return !(slot.flags & kUnreadable) && (slot.value.h != 0 || slot.value.m != 0);
}

bool overlap(const Slot& a, const Slot& b) {
  // Without addresses the block's number has to do: two parts of one block then count as the same.
  if (a.address == 0 || b.address == 0) return a.storage != 0 && a.storage == b.storage;
  return a.address < b.address + b.size_bytes && b.address < a.address + a.size_bytes;
}

std::optional<uint64_t> maker_of(const ProcessLog& log, uint64_t before, const Fingerprint& value) {
  for (uint64_t i = std::min<uint64_t>(before, log.events.size()); i-- > 0;) {
    const Event event = log.events[i];
    if (event.kind != EventKind::op && event.kind != EventKind::collective) continue;
    auto made = find_slot(log, event, [&](const Slot& slot) {
      return slot.kind != SlotKind::in && is_value(slot) && slot.value == value;
    });
    if (!made) continue;
    // Who hands on what it was given has not made it.
    auto given = find_slot(log, event, [&](const Slot& slot) {
      return slot.kind == SlotKind::in && slot.value == value;
    });
    if (!given) return i;
  }
  return std::nullopt;
}

std::vector<uint64_t> writers_of(const ProcessLog& log, EventRange range, const Slot& slot) {
  std::vector<uint64_t> found;
  for (uint64_t i = range.first; i < range.last; ++i) {
    const Event event = log.events[i];
    if (event.kind == EventKind::optimizer || event.kind == EventKind::state) continue;
    // Of an accumulation the gradient is among what it gave, not among what it wrote.
    auto written = find_slot(log, event, [&](const Slot& other) {
      return other.kind != SlotKind::in && overlap(other, slot) &&
             (other.kind == SlotKind::written || event.kind == EventKind::accumulate);
    });
    if (written) found.push_back(i);
  }
  return found;
}

}  // namespace opguard
