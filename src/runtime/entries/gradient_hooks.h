// runtime/entries/gradient_hooks.h: what hangs on an autograd node and records its executions.
//
//   MulBackward0 runs             hook(grad_inputs, grad_outputs): an event of kind node
//   a leaf gets its gradient      before(grad), and a call when it is added: one of kind accumulate
//   --transplant, --drill         before(grad_outputs) of a node, where it is wanted
//
// Counterexample: a Python reference from hook to tensor would keep a graph alive. A hook belongs
// to its node and points to nothing; a leaf's to the leaf, weakly.
//
// The cost: in backward one call a node, and two a leaf.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/host/py.h"

namespace opguard {

// Of a node that is called `node` and belongs to forward event `forward` of a boundary. Without a
// boundary it records nothing: that it is there says that the node is claimed. before: its method
// `before` is to be called, too. Empty with an error set, if there is no memory.
Ref node_hook(const std::string* boundary, const std::string* node, uint32_t forward, bool before);
// Of the node that adds to that leaf. Empty: the leaf cannot be referred to weakly.
Ref leaf_hook(PyObject* leaf);
bool is_gradient_hook(PyObject* object);

// Makes the hooks' types; false with an error set.
bool init_gradient_hooks();

}  // namespace opguard
