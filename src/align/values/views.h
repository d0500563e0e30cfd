// align/values/views.h: what a tensor showed that lies in memory in one way, when last looked at.
//
// A view is an address, a span and a meta. Whoever looks at it again, in the same block and under
// the same tensor version, should find the bytes that were seen there last:
//
//   event 3   h = norm(x)    leaves block 7 at 0x40, version 0, bytes P
//   event 5   w = h * 2      reads it, version 0, P     as_seen
//   event 9   y = h + 1      reads it, version 0, Q     changed: someone wrote there unseen
//   event 12  h.add_(1)      leaves it, version 1       counted
//
// Strides are not in a log: two permuted tensors of one view may show the same bytes as others.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "record/event.h"
#include "record/event_slots.h"

namespace opguard {

// A result in the memory of what was read. As long as nothing was written there (SlotKind::written)
// it neither leaves its block's bytes nor reads them: `x[:2]`, `x.detach()`. A scratch buffer that
// is handed out again holds what was there.
inline bool is_view(const EventSlots& slots, const Slot& out) {
  return out.kind == SlotKind::out && out.storage != 0 &&
         std::any_of(slots.begin(), slots.end(), [&](const Slot& slot) {
           return slot.kind == SlotKind::in && slot.storage == out.storage;
         });
}

// is_view() of all results of one event: linear in its slots, which are up to 65,535 of a
// checkpoint.
class Views {
 public:
  explicit Views(const EventSlots& slots) {
    for (const Slot& slot : slots)
      if (slot.kind == SlotKind::in && slot.storage != 0) read_.push_back(slot.storage);
    std::sort(read_.begin(), read_.end());
  }
  bool operator()(const Slot& out) const {
    return out.kind == SlotKind::out && std::binary_search(read_.begin(), read_.end(), out.storage);
  }

 private:
  std::vector<uint32_t> read_;  // storages
};

struct View {
  uint64_t address = 0, size_bytes = 0;
  uint32_t meta = kNone;
  bool operator==(const View&) const = default;
};

inline View view_of(const Slot& slot) { return {slot.address, slot.size_bytes, slot.meta}; }

struct ViewHash {
  size_t operator()(const View& view) const {
    return (view.address ^ (view.size_bytes << 20) ^ view.meta) * 0x9e3779b97f4a7c15ull;
  }
};

// How what a slot shows compares with what was seen there before.
enum class Look : uint8_t {
  first,    // another block lies there now, or nobody looked before
  counted,  // written since: another version
  as_seen,
  changed,  // other bytes under the same version
};

struct Sight {
  uint32_t storage = 0, version = 0;
  Fingerprint value;

  static Sight of(const Slot& slot) { return {slot.storage, slot.version, slot.value}; }
  Look compare(const Slot& slot) const {
    if (storage != slot.storage) return Look::first;
    if (version != slot.version) return Look::counted;
    return value == slot.value ? Look::as_seen : Look::changed;
  }
};

}  // namespace opguard
