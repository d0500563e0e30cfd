// runtime/optimizer.h: an optimizer step as one event: parameters, gradients and state before and
// after.
#pragma once

#include "runtime/py.h"

namespace opguard {

// Called by torch's global step hooks with the torch.optim.Optimizer.
void optimizer_begins(PyObject* optimizer);
void optimizer_ended(PyObject* optimizer);

}  // namespace opguard
