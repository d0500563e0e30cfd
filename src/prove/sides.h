// prove/sides.h: the model and the ranks of a plan, before their first operators.
#pragma once

#include <vector>

#include "prove/opaque.h"
#include "prove/rank.h"

namespace opguard::proving {

// Of `known`, the model's sums that have names, a model that runs makes more. Calls that stand for
// themselves are `opaque`, of all sides together. The ranks' elements are compared with namesakes.
Rank model_of(Terms& terms, const Captured& captured, KnownSums& known, OpaqueCalls* opaque);
std::vector<Rank> ranks_of(Terms& terms, const Captured& captured, KnownSums& known,
                           OpaqueCalls* opaque, Namesakes* namesakes = nullptr);

}  // namespace opguard::proving
