// prove/sides.h: the model and the ranks of a plan, before their first operators.
#pragma once

#include <vector>

#include "prove/opaque.h"
#include "prove/rank.h"

namespace opguard::proving {

// known: the model's sums that have names; a model that runs adds to them.
// opaque: calls that stand for themselves, of all sides together.
// namesakes: with which the ranks' elements are compared.
Rank model_of(Terms& terms, const Captured& captured, KnownSums& known, OpaqueCalls* opaque);
std::vector<Rank> ranks_of(Terms& terms, const Captured& captured, KnownSums& known,
                           OpaqueCalls* opaque, Namesakes* namesakes = nullptr);

}  // namespace opguard::proving
