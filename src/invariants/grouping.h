// invariants/grouping.h: broken rules -> findings: one for one cause.
//
//   step 1   backward: the last step's gradients are still there
//   step 1   backward: no zero_grad since the last step         the same place: below it
//   step 2   fc1.weight: its gradient is out of range            a consequence: below it
//
// Counterexample: two parameters that break rules of unlike relations in one step, and share no
// module and no place, are two findings.
//
// The cost: a few look-ups a rule, so thousands of broken rules are no matter.
#pragma once

#include <vector>

#include "invariants/check_rows.h"

namespace opguard {

// The head comes first: the most severe, and of these the one that says most directly what is
// wrong.
using BrokenGroup = std::vector<BrokenRule>;

// By severity of the head, then by step, then by how directly it says what is wrong. Rules of one
// group break within a step of each other. They share a name, a module, a place or a relation, or
// the one follows from the other. A note joins a group, and ties none together.
std::vector<BrokenGroup> group_broken(std::vector<BrokenRule> broken);

}  // namespace opguard
