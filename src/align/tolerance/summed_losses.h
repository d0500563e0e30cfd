// align/tolerance/summed_losses.h: steps whose losses are the reference's only when added up.
//
//   reference   2 micro-batches a step, losses 2.43 and 2.40
//   candidate   the same rows in one, its loss is 4.83
//
// No loss of the candidate is one of the reference's, and the gradients of the step are equal all
// the same. Sketches are linear, so the sketch of a sum is the sum of the sketches.
//
// Counterexample: as many losses as the reference has. Each is compared by itself then.
//
// The cost: the losses of both runs are read once.
#pragma once

#include <set>
#include <vector>

#include "align/tolerance/tensors.h"

namespace opguard {

// Steps in which the one process with losses has fewer of them than the reference. Their sums agree
// there within `allowed`, relative to the larger.
std::set<uint32_t> steps_with_summed_losses(const ProcessTensors& reference, SketchReader& a,
                                            const std::vector<ProcessTensors>& ranks,
                                            SketchReader& b, double allowed);

}  // namespace opguard
