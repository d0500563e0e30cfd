// runtime/host/python_layout.h: where torch keeps a tensor's fields, for Python to hand in and to
// ask.
#pragma once

#include "runtime/host/py.h"

namespace opguard {

// tensor_layout(probes or None) -> {field: offset, "trusted": bool}. `probes`: the tensors by which
// it is found (python/opguard/record/tensor_layout.py); None for a question alone.
PyObject* tensor_layout_of(PyObject* module, PyObject* probes);

}  // namespace opguard
