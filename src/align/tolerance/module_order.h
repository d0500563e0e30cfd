// align/tolerance/module_order.h: the modules of a candidate's operators where no stack told them.
//
//   reference    model.linear:77ab in blocks.0.ffn, then in blocks.1.ffn
//   candidate    compiled: model.linear:77ab twice, in no module      blocks.0.ffn, blocks.1.ffn
//
// A compiled graph has no Python stack. What runs as often in a step as in the reference runs in
// its order there.
//
// Counterexample: another number of runs, as of a stage of a pipeline. It stays without a module.
//
// The cost: one pass over each side's tensors.
#pragma once

#include "align/tolerance/tensors.h"

namespace opguard {

// Gives modules to those tensors of `candidate` that have none, where all of a boundary have none.
void order_modules(ProcessTensors& candidate, const ProcessTensors& reference, const Texts& texts);

}  // namespace opguard
