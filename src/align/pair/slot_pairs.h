// align/pair/slot_pairs.h: which slots of two events of one boundary are the same argument or
// result.
#pragma once

#include <optional>
#include <vector>

#include "record/record.h"

namespace opguard {

// A slot of one side and its counterpart, where that side has one.
struct SlotPair {
  std::optional<Slot> a, b;
  uint64_t at_a = 0, at_b = 0;  // indexes in each side's ProcessLog::slots

  const Slot& either() const { return a ? *a : *b; }
};

// By kind and place. At an optimizer by name, since two runs may hold the parameters in another
// order; what only one side calls so is paired in order among its like (a renamed module).
// Generators by name.
std::vector<SlotPair> pair_slots(const ProcessLog& a, const Event& ea, const ProcessLog& b,
                                 const Event& eb);

// Whether the order of an event's slots means nothing.
bool slots_by_name(const Event& event);

// Shape and dtype.
bool same_shape(const ProcessLog& a, const Slot& x, const ProcessLog& b, const Slot& y);

// One run read what torch.empty had left there, which is whatever the memory held, and the other
// run a value: nobody wrote it in the one run. Zeros are no value here; fresh memory holds them by
// chance.
bool garbage_in_one_run(const Slot& x, const Slot& y);

// Of two slots of one shape. Each digest follows from the bytes: one that differs alone says that
// a log is not what was written, and that is a difference to show.
bool same_bytes(const Slot& x, const Slot& y);

}  // namespace opguard
