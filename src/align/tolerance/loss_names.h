// align/tolerance/loss_names.h: the losses of a candidate that calls backward() elsewhere.
//
//   reference    loop.py     loss.backward()                loop.backward:ksbm
//   candidate    update.py   (loss * scale).backward()      update.backward:i6yt: the same, if each
//                                                           run has one such place
//
// Counterexample: two places each, as of a generator and a discriminator. Which is which is not
// told by their number.
//
// The cost: one pass over what is compared.
#pragma once

#include <vector>

#include "align/tolerance/tensors.h"

namespace opguard {

// Gives the losses of all ranks the reference's name.
void name_losses(std::vector<ProcessTensors>& ranks, const ProcessTensors& reference);

}  // namespace opguard
