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

}  // namespace opguard
