// align/values/writings.h: when recorded operators wrote into which memory, in one process.
//
// An operator writes from its begin to its end, whichever thread reads meanwhile:
//
//   x.add_(1)      10 to 14 ms, block 3
//   y = x * 2      reads block 3 between 12 and 16 ms: other bytes than before are no surprise
//
// Counted as writers are slots left written, all that a collective touches while it is in flight,
// running statistics, and what could not be read.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "record/record.h"

namespace opguard {

class Writings {
 public:
  // `uncounted`: the operator writes inputs that it does not declare as written. Events are added
  // in their order.
  void add(const Event& event, const Slot& slot, bool uncounted);

  // Whether the memory of a slot was written between two times.
  bool between(const Slot& slot, uint64_t from_ns, uint64_t to_ns) const;

 private:
  struct Writing {
    uint64_t begin, end;  // addresses
    uint64_t from_ns, to_ns;
  };
  // By storage; 0: writings known by address alone (numpy's). In the order of their ends.
  std::unordered_map<uint32_t, std::vector<Writing>> writings_;
};

}  // namespace opguard
