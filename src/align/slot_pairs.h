// align/slot_pairs.h: which slots of two events of one boundary are the same argument or result.
#pragma once

#include <vector>

#include "record/record.h"

namespace opguard {

// A slot of one side and its counterpart; nullptr: that side has none.
struct SlotPair {
  const Slot* a = nullptr;
  const Slot* b = nullptr;
};

// By kind and place. At an optimizer by name, since two runs may hold the parameters in another
// order; what only one side calls so is paired in order among its like (a renamed module).
std::vector<SlotPair> pair_slots(const ProcessLog& a, const Event& ea, const ProcessLog& b,
                                 const Event& eb);

// Whether the order of an event's slots means nothing.
bool slots_by_name(const Event& event);

}  // namespace opguard
