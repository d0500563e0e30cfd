#include "align/values/writings.h"

#include <algorithm>

namespace opguard {

void Writings::add(const Event& event, const Slot& slot, bool uncounted) {
  const bool in = slot.kind == SlotKind::in;
  const bool exchanges = communicates(event);
  // A collective in flight writes until an event of its own says that it has landed; what is read
  // meanwhile is flagged unreadable.
  const bool writes = slot.kind == SlotKind::written || exchanges || (uncounted && in) ||
                      (in && (slot.flags & kUnreadable));
  if (!writes || (slot.storage == 0 && slot.address == 0)) return;
  // What could not be read has no address: it may be all of the block.
  const uint64_t end = slot.address ? slot.address + slot.size_bytes : UINT64_MAX;
  writings_[slot.storage].push_back({slot.address, end, event.start_ns, event.end_ns});
}

bool Writings::between(const Slot& slot, uint64_t from_ns, uint64_t to_ns) const {
  const uint64_t begin = slot.address, end = slot.address + slot.size_bytes;
  for (uint32_t storage : {slot.storage, 0u}) {
    auto found = writings_.find(storage);
    if (found == writings_.end()) continue;
    auto w = std::lower_bound(
        found->second.begin(), found->second.end(), from_ns,
        [](const Writing& writing, uint64_t time_ns) { return writing.to_ns <= time_ns; });
    for (; w != found->second.end(); ++w)
      if (w->begin < end && begin < w->end && w->from_ns <= to_ns) return true;
  }
  return false;
}

}  // namespace opguard
