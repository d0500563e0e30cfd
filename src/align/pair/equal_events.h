// align/pair/equal_events.h: whether two events are equal, at the speed of reading them.
#pragma once

#include <cstdint>
#include <vector>

#include "record/record.h"

namespace opguard {

// Two logs number texts and shapes each in their own way; here both are known by common numbers.
class EqualEvents {
 public:
  EqualEvents(const ProcessLog& a, const ProcessLog& b);

  // True only where compare_events says equal. False: look closer (an optimizer's slots in another
  // order, memory without a value on one side only).
  bool values(const Event& a, const Event& b) const;

  // The same execution of the same boundary in both runs, with equal values; of generators' states
  // whatever their values.
  bool same(const Event& a, const Event& b) const;

 private:
  uint32_t text(int side, uint32_t string) const {
    return string == kNone ? 0 : texts_[side][string];
  }
  bool slots(const Slot& x, const Slot& y, bool by_name) const;

  const ProcessLog* logs_[2];
  std::vector<uint32_t> texts_[2], shapes_[2];
};

}  // namespace opguard
