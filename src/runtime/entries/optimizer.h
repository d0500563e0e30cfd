// runtime/entries/optimizer.h: an optimizer step as one event: parameters, gradients and state
// before and after.
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
