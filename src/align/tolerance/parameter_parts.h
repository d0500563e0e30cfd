// align/tolerance/parameter_parts.h: parts of a port's parameters, which are known as the
// parameters are.
//
//   part @ self.up[expert]     self.up[2] is a third of a weight that the reference has as
//                              gate_up_proj, and that no operator of the reference leaves
//
// An operator that only moves elements, of parameters alone, computes nothing that could be wrong.
// Which part it took is told by the first operator that computes with it.
//
// Not so: a part of a value that was computed, or that indices choose which a tensor holds.
//
// The cost: one pass over the candidate's events.
#pragma once

#include <vector>

#include "record/event_ref.h"
#include "record/record.h"

namespace opguard {

// Results in the process that are parts of what its first `<parameters>` hold.
std::vector<SlotRef> parameter_parts(const Run& run, int32_t process);

}  // namespace opguard
