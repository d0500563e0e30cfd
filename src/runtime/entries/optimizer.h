// runtime/entries/optimizer.h: an optimizer step as one event: parameters, gradients and state
// before and after.
//
//   opt.step()    in   param:layers.0.weight, grad:..., state:layers.0.weight.exp_avg, ...
//                 out  param:layers.0.weight, state:...            scalars  group0.lr=0.001, ...
//
// These are what two runs are judged by. Counterexample: a closure that the program hands to step()
// runs its forward and backward. That is no part of the step, and is recorded as ever
// (closure_begins).
//
// The cost: all parameters and states are read twice a step. At most 65,535 slots: Slot::index has
// 16 bits.
#pragma once

#include "runtime/host/py.h"
#include "runtime/host/torch_api.h"

namespace opguard {

// Called by torch's global step hooks with the torch.optim.Optimizer; by a probe on `step` of an
// object outside torch.optim that keeps a list of parameters.
void optimizer_begins(PyObject* optimizer);
void optimizer_ended(PyObject* optimizer);

// The step raised.
void optimizer_dropped(PyObject* optimizer);

// Keeps parameters as an optimizer does, but torch's hooks say nothing of it. Under OwnWork.
bool steps_unhooked(const TorchApi& torch, PyObject* object);

// The program's closure begins or ends: what it runs is no part of the optimizer.
void closure_begins();
void closure_ended();

}  // namespace opguard
