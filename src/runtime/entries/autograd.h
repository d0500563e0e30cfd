// runtime/entries/autograd.h: hooks on autograd nodes, so that the backward pass records under its
// forward sites.
//
//   forward     y = og("mul:77ab", h) * 2       MulBackward0, new between y and h: mul:77ab's
//   backward    MulBackward0 runs               an event of kind node, of mul:77ab
//               a leaf gets its gradient        an event of kind accumulate
//
// An operator claims every node between its result and what its inputs came from. Inner operators
// ended first and have claimed theirs, so an outer one gets what is left.
//
// Counterexample: a node that an operator met inside another one. It stays the inner one's.
//
// The cost: a walk over the operator's own nodes. In backward what a hook costs
// (gradient_hooks.h).
#pragma once

#include <string>
#include <vector>

#include "runtime/recorder/recorder.h"

namespace opguard {

// Claims for forward event `index` every node between `result` and `history` that no earlier event
// claimed. Its executions become events of kind node, and of the leaves it reaches, of kind
// accumulate. Keeps no tensor and no graph alive. Under OwnWork. begin: Event::begin; the node of a
// compiled graph that recorded since has told its backward itself.
void attach_hooks(const TorchApi& torch, const std::string& boundary, uint32_t index,
                  PyObject* result, const std::vector<Ref>& history, uint64_t begin = 0);

// Whether some tensor of `result` has a grad_fn. Under OwnWork.
bool in_graph(const TorchApi& torch, PyObject* result);

// torch.autograd.backward or grad begins with these roots (a tensor or a sequence of them).
void record_loss(PyObject* roots);

}  // namespace opguard
