// runtime/entries/autograd.h: hooks on autograd nodes, so that the backward pass records under its
// forward sites.
#pragma once

#include <string>
#include <vector>

#include "runtime/recorder/recorder.h"

namespace opguard {

// Claims for forward event `index` every node between `result` and `history` that no earlier event
// claimed: its executions become events of kind node, and of the leaves it reaches, of kind
// accumulate. Keeps no tensor and no graph alive. Under OwnWork. begin: Event::begin; the node of a
// compiled graph that recorded since has told its backward itself.
void attach_hooks(const TorchApi& torch, const std::string& boundary, uint32_t index,
                  PyObject* result, const std::vector<Ref>& history, uint64_t begin = 0);

// Whether some tensor of `result` has a grad_fn. Under OwnWork.
bool in_graph(const TorchApi& torch, PyObject* result);

// torch.autograd.backward or grad begins with these roots (a tensor or a sequence of them).
void record_loss(PyObject* roots);

// Makes the hooks' types; false with an error set.
bool init_autograd();

}  // namespace opguard
