// align/judge/random_state.h: whether the generators of random numbers had parted, and when.
//
//   step            2        3         4
//   a  torch.cpu    91c4     5d02      77aa
//   b  torch.cpu    91c4     e813      0b6f       "differs since step 3 (equal up to step 2)"
//
// A generator's state is evidence and never a pivot: nobody may draw from it. Counterexample: numpy
// was seeded otherwise in b and no operator draws from it; nothing that follows differs.
#pragma once

#include <string>
#include <vector>

#include "align/judge/verdict.h"

namespace opguard {

// "the random state of torch.cpu differs since step 3 (equal up to step 2)". It is of the
// generators that already differed at the last recorded state before these events of one place.
// None if none did or nothing is known. Evidence, never a pivot: nobody may draw from that
// generator.
Reasons random_state_difference(const Run& a, const EventRef& at_a, const Run& b,
                                const EventRef& at_b);

// Every generator of every process whose state differs in some pair of state events.
std::vector<StateDifference> state_differences(const Run& a, const Run& b,
                                               const Alignment& alignment);

// Somebody draws from it, and the program did not seed both runs' alike later on.
bool matters(const StateDifference& state);

// Both began alike, and one run has drawn what the other has not: they are not at one point.
bool parted_for_good(const StateDifference& state);

// "the random state of torch.cpu differs since step 3, in 4 of 9 records"
Reason state_reason(const Run& a, const StateDifference& state);

// A note of each of the verdict's states that matters.
void tell_states(const Run& a, Verdict& verdict);

}  // namespace opguard
