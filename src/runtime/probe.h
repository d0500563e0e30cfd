// runtime/probe.h: the objects that stand for an operand during one operator.
#pragma once

#include "runtime/py.h"

namespace opguard {

// og(id, operand), og.name(id, operand) and og.aug(id, owner) of docs/architecture.md;
// METH_FASTCALL functions. Three, although two do the same: torch.compile puts another function in
// each one's place, and Python takes built-in functions with one C function for equal.
PyObject* probe(PyObject* module, PyObject* const* args, Py_ssize_t count);
PyObject* name(PyObject* module, PyObject* const* args, Py_ssize_t count);
PyObject* aug(PyObject* module, PyObject* const* args, Py_ssize_t count);

// Makes the stand-ins' types; false with an error set.
bool init_probe();

}  // namespace opguard
