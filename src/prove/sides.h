// prove/sides.h: the model and the ranks of a plan, before their first operators.
//
//   w is state of shape [4, 2]     eight variables w[0] to w[7]; the model's memory has all
//   rank 1 has its second half     its memory has w[4] to w[7]: the same unknowns, not copies
//   ids are tokens of size 10      unknown whole numbers from 0 to 9
//
// So a plan is right in its inputs by construction. What it makes of them is compared.
#pragma once

#include <vector>

#include "prove/opaque.h"
#include "prove/rank.h"

namespace opguard::proving {

// `known` are the model's sums that have names; a model that runs adds to them. `opaque` are calls
// that stand for themselves, of all sides together. With `namesakes` the ranks' elements are
// compared.
Rank model_of(Terms& terms, const Captured& captured, KnownSums& known, OpaqueCalls* opaque);
std::vector<Rank> ranks_of(Terms& terms, const Captured& captured, KnownSums& known,
                           OpaqueCalls* opaque, Namesakes* namesakes = nullptr);

}  // namespace opguard::proving
