// Slots of one kind are numbered on where one between them falls away:
//
//   written0 | written1, as before: unwritten | written2    ->    written0 | written1
//
// A value that was lost stays a slot, counted: it was there to be recorded.
#include "record/late_values.h"

namespace opguard {

CompletedSlots complete_slots(LateValues& late, Event& event, Slot* slots) {
  CompletedSlots done{event.slot_count, 0};
  bool pending = false;
  for (size_t i = 0; i < event.slot_count; ++i) pending |= (slots[i].flags & kPending) != 0;
  if (!pending) return done;
  done.left = 0;
  for (size_t i = 0; i < event.slot_count; ++i) {
    Slot slot = slots[i];
    if (slot.flags & kPending) {
      const LateValues::Outcome outcome = late.complete(event, slot);
      if (outcome == LateValues::Outcome::unwritten) continue;
      done.lost += outcome == LateValues::Outcome::lost;
    }
    if (done.left != i && done.left > 0 && slots[done.left - 1].kind == slot.kind)
      slot.index = static_cast<uint16_t>(slots[done.left - 1].index + 1);
    else if (done.left != i)
      slot.index = 0;
    slots[done.left++] = slot;
  }
  event.slot_count = static_cast<uint32_t>(done.left);
  return done;
}

}  // namespace opguard
