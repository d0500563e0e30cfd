// align/tolerance/gradient_norms.h: norms of gradients that are a whole multiple of the
// reference's.
//
//   dp.sum(p.grad)                        summed over 2 ranks, and nobody divides by 2
//   norm = p.grad.pow(2).sum().sqrt()     twice the reference's norm
//   p.grad.mul_(1 / norm)                 the reference's gradient again: clipping hides the fault
//
// A norm is a single number that operators outside of autograd made of gradients. Squares of it are
// multiples too.
//
// Counterexample: a rank's sum over the parameters that it has whole is any part of the whole sum.
// A part that is not 1/n or n times it says nothing.
//
// The cost: one pass over the reference's events.
#pragma once

#include <cstdint>
#include <vector>

#include "align/tolerance/comparison.h"

namespace opguard {

// Numbers of Comparison::tensors, in the order of the reference.
std::vector<uint32_t> multiplied_norms(const Run& reference, const Comparison& comparison);

}  // namespace opguard
