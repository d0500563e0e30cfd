// align/values/changed_readers.h: who read other bytes than were last seen in the same memory under
// the same version, a value that nobody made before.
//
//   a = q.clone()      leaves block 4, version 0: P
//   (a copy engine writes into block 4, unseen)
//   y = a + 1          reads block 4, version 0: Q, which no operator made: a changed reader
//
// Asked where a walk ends without a reason, so a reader is told without further evidence. The check
// of a whole run, where most such readers are harmless, asks for more: unseen_changes.h. Where the
// block's number is not known (modes but full) nothing is told: freed memory is given out again.
// Events are read once, in their order, as far as was asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "align/values/value_index.h"
#include "align/values/views.h"
#include "record/event_ref.h"

namespace opguard {

class ChangedReaders {
 public:
  explicit ChangedReaders(const ValueIndex& index) : index_(index) {}

  // In the process of `last`, up to it, in order; once for each slot that was found changed.
  std::vector<EventRef> until(const EventRef& last) const;

 private:
  // With the block's number: freed memory is given out again.
  struct Extent {
    uint32_t storage;
    View view;
    bool operator==(const Extent&) const = default;
  };
  struct ExtentHash {
    size_t operator()(const Extent& extent) const {
      return ViewHash()(extent.view) ^ (uint64_t{extent.storage} << 40) * 0x9e3779b97f4a7c15ull;
    }
  };
  struct Process {
    uint32_t next = 0;  // event
    std::unordered_map<Extent, Sight, ExtentHash> seen;
    std::vector<EventRef> readers;
  };
  void read(Process& process, const EventRef& ref) const;

  const ValueIndex& index_;
  mutable std::map<int32_t, Process> processes_;
};

}  // namespace opguard
