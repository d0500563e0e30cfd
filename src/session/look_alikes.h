// session/look_alikes.h: what of a tree is not in a plan and might be taken for what is.
//
//   plan       `rotate(q, cos)` in llama.py: a boundary
//   tree       `rotate(x, sin)` in gptneox.py, which was not loaded: a key in Plan::elsewhere
//   later      llama.py calls no `rotate`: the one in gptneox.py was there before, so it is not it
//
// Counterexample: a site in a scope of the plan. The plan has it whole, in its context.
//
// The cost: the whole tree is parsed once; four bytes for each key.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "support/source.h"

namespace opguard {

// Plan::elsewhere of a plan made from these sources: every file below the roots, parsed on all
// cores. Those that are no Python hold nothing.
std::vector<uint32_t> look_alikes(const SourceSet& sources, const Plan& plan);

}  // namespace opguard
