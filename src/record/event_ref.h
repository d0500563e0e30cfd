// record/event_ref.h: one event of a run, one slot of an event.
#pragma once

#include <cstdint>

#include "record/event.h"

namespace opguard {

struct EventRef {
  int32_t process = -1;  // index in Run::processes; -1: there is none
  uint32_t event = kNone;
  bool operator==(const EventRef&) const = default;
};

struct SlotRef {
  EventRef event;
  uint64_t slot = 0;  // index in ProcessLog::slots
  bool operator==(const SlotRef&) const = default;
};

// A slot of a run as one number.
inline uint64_t slot_key(int32_t process, uint64_t slot) {
  return uint64_t(static_cast<uint32_t>(process)) << 40 | slot;
}
inline uint64_t slot_key(const SlotRef& at) { return slot_key(at.event.process, at.slot); }

}  // namespace opguard
