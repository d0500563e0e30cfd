// Each process is read forward once. `next` is where the reading stopped. So a question about a
// later event costs the events in between, and one about an earlier event reads none.
//
//   until({0, 900})   reads events 0 to 900
//   until({0, 300})   reads nothing: readers behind 300 are dropped from what is known
#include "align/values/changed_readers.h"

#include <algorithm>

namespace opguard {

std::vector<EventRef> ChangedReaders::until(const EventRef& last) const {
  Process& process = processes_[last.process];
  for (; process.next <= last.event; ++process.next) read(process, {last.process, process.next});
  std::vector<EventRef> readers = process.readers;
  std::erase_if(readers, [&](const EventRef& reader) { return reader.event > last.event; });
  return readers;
}

void ChangedReaders::read(Process& process, const EventRef& ref) const {
  const ProcessLog& log = index_.log(ref);
  const EventSlots slots = log.slots_of(index_.event(ref));
  for (const Slot& slot : slots) {
    if (!has_value(slot) || slot.storage == 0 || !slot.address || !slot.size_bytes) continue;
    // What is seen becomes what is expected next: one change is told once, to its first reader.
    auto [at, fresh] =
        process.seen.try_emplace(Extent{slot.storage, view_of(slot)}, Sight::of(slot));
    const Look look = fresh ? Look::first : at->second.compare(slot);
    at->second = Sight::of(slot);
    // Bytes that an operator did make are another tensor's, handed on in this memory: no change
    // unseen.
    if (slot.kind == SlotKind::in && look == Look::changed &&
        index_.producer(value_key(log, slot), ref, false).event.process < 0)
      process.readers.push_back(ref);
  }
}

}  // namespace opguard
