// align/tolerance/declared_tensors.h: every tensor of the candidate of which a library declares how
// ranks hold it, and whether they do.
//
//   w.placements == (Shard(0),), found sharded along 0                             as found
//   y = DTensor.from_local(part, mesh, [Replicate()]), `part` found a partial sum  otherwise
//   the same of a tensor of zeros                                                  untold
//
// The reference need not have run the operator: y has the very bytes of `part`, and the reference
// has that.
//
// Counterexample: Megatron's attributes of a parameter say of its gradient what it is behind all
// reductions. Where the step itself makes the last of these, the gradient is not judged.
//
// The cost: nothing for logs without declarations, else one pass over the compared tensors.
#pragma once

#include <vector>

#include "align/tolerance/comparison.h"

namespace opguard {

// ranks: the candidate's tensors of each process, by the reference's names.
std::vector<DeclaredTensor> declared_tensors(const Run& reference, const Run& candidate,
                                             const Comparison& comparison,
                                             const std::vector<ProcessTensors>& ranks);

}  // namespace opguard
