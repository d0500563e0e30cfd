// session/look_alikes.h: what of a tree is not in a plan and might be taken for what is.
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
