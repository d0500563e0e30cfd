// align/judge/random_state.h: whether the generators of random numbers had parted, and when.
#pragma once

#include <string>
#include <vector>

#include "align/judge/verdict.h"

namespace opguard {

// "the random state of torch.cpu differs since step 3 (equal up to step 2)", of the generators that
// already differed at the last recorded state before these events of one place; "" if none did or
// nothing is known. Evidence, never a pivot: nobody may draw from that generator.
std::string random_state_difference(const Run& a, const EventRef& at_a, const Run& b,
                                    const EventRef& at_b);

// Every generator of every process whose state differs in some pair of state events, as
// Verdict::states, and a note of each that anybody draws from and that the program did not seed
// later.
void add_random_states(const Run& a, const Run& b, const Alignment& alignment, Verdict& verdict);

}  // namespace opguard
