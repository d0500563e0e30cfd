// record/late_values.h: slots whose value is still being computed when their event is added.
//
// Such a slot has flag kPending and, until it is completed, tickets in place of its value:
//
//   value.h   its own ticket, not 0
//   flat      the ticket of the value it must differ from to be a slot at all; 0: none
//   pattern   the number of its stream
//
// No pending slot is ever written to a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "record/event.h"

namespace opguard {

inline constexpr SlotFlags kPending = 128;  // of Slot::flags

// Of the thread that encodes, without the program's locks.
class LateValues {
 public:
  enum class Outcome : uint8_t {
    there,
    lost,      // it will never come
    unwritten  // the tensor is as it was before: no slot
  };

  virtual ~LateValues() = default;

  // Takes in what has come; where some of these have not, waits for more, at most wait_ns. True:
  // all that will ever come is there.
  virtual bool fetch(const std::vector<Slot>& slots, uint64_t wait_ns) = 0;

  // After that: a pending slot becomes a plain one; `event` gets stream and times of the device.
  virtual Outcome complete(Event& event, Slot& slot) = 0;
};

struct CompletedSlots {
  size_t left = 0;    // of the event's slots
  uint64_t lost = 0;  // of these: their values never came
};

// Completes the slots of one event in place; slot_count becomes what is left.
//
//   in0 (there), out0 (pending, lost), out1 (pending, unwritten)    in0, out0; one lost
//
// The slot of a value that never came stays, unreadable: the record is lost at this place. One that
// is no slot goes, and those of its kind behind it are numbered anew.
CompletedSlots complete_slots(LateValues& late, Event& event, Slot* slots);

}  // namespace opguard
