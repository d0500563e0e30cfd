// runtime/recorder/parameter_names.h: what the program's modules call a parameter
// (python/opguard/record/parameter_names.py).
#pragma once

#include <string>
#include <vector>

#include "runtime/host/py.h"

namespace opguard {

// function: called with a list of tensors for a list of str or None; held for ever.
void set_parameter_names(PyObject* function);

// "layers.0.weight" for each of `tensors`, "" for what belongs to no module. Under OwnWork.
std::vector<std::string> parameter_names(const std::vector<Ref>& tensors);

}  // namespace opguard
