// align/values/memory.h: who left these bytes last, in one run.
//
// A value's name (its fingerprint) says what bytes there are, not where they came from. Zeros, a
// count of 24 or a boolean mask are made in many places. Memory says it: the block's number
// (Slot::storage), the address and the span of what an operator left and of what another one reads.
//
//   h = norm(x)        leaves block 7, bytes 0-127
//   y = h[:2] * w      reads  block 7, bytes 0-63: norm left them
//
// The one model of a run's memory, in five files, all told by `Slot::storage`, address and span:
//
//   memory.h           looking back from a reader: who left these bytes?
//   views.h            going forward: are these the bytes that were seen here last?
//   writings.h         by time: did a recorded operator write here meanwhile?
//   changed_readers.h  readers that found other bytes, where a walk ends without a reason;
//   unseen_changes.h   and in a whole run, by far more evidence
//
// Made in stretches when asked for, since who looks back rarely looks far.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "record/event_ref.h"
#include "record/record.h"

namespace opguard {

class Memory {
 public:
  explicit Memory(const Run& run) : run_(run) {}

  // The event that left the value a slot holds in the very memory it lies on, before `consumer` in
  // its process (`inclusive`: or by it). Of several that left the same value there one behind the
  // other it is the first. Such are an operator inside a module, the module, a view that is no
  // copy. A view in another shape is passed over:
  //   p.mul_(q)   p.reshape(1, -1)   p * r      `*` reads what `mul_` left
  // {} where the memory is unknown, or the last event that wrote there left other bytes.
  SlotRef writer(const EventRef& consumer, const Slot& slot, bool inclusive) const;

  // Who left the bytes a slot lies on, before `consumer` in its process: the last event for each
  // part of that memory, the latest first. Views that are not the very slot did not. Without a
  // block's number (modes but full) freed memory may pass for it, if it lies inside or around.
  struct Parts {
    std::vector<SlotRef> left;
    bool complete = false;  // every byte is accounted for
  };
  Parts parts(const EventRef& consumer, const Slot& slot) const;

  // Who first read or left anything in the block that a slot lies in, at the latest its own event.
  // `{}` where the block is not known.
  EventRef first_holder(const SlotRef& at) const;

 private:
  struct Block {  // memory left by an event
    uint64_t begin, end;
    uint64_t flat;     // Slot::flat of what was left
    uint32_t storage;  // 0: not known
    uint32_t meta;
    bool view;  // its event read this block and wrote nothing there: the bytes are as they were
    uint32_t event;
    uint64_t slot;
  };
  // Of so many events one stretch.
  static constexpr uint32_t kEventsOf = 1 << 12;
  // Stretches looked back through: memory that nobody has written for a million events is told by
  // its value alone.
  static constexpr uint32_t kReach = 1 << 8;
  struct Stretch {
    std::vector<Block> blocks;         // in order of completion
    std::vector<uint32_t> by_storage;  // indices in `blocks`: by storage, then as they are
  };
  const Stretch& stretch(int32_t process, uint32_t number) const;

  // What was left in memory that may be the slot's, from the event before `before` back.
  // `visit(block)`: false ends it.
  template <typename Visit>
  void look_back(int32_t process, uint32_t before, const Slot& slot, Visit visit) const;

  const Run& run_;
  mutable std::unordered_map<uint64_t, Stretch> stretches_;  // by process and number
};

}  // namespace opguard
