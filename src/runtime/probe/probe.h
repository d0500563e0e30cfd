// runtime/probe/probe.h: the objects that stand for an operand during one operator.
#pragma once

#include "runtime/host/py.h"

namespace opguard {

// og(id, operand), og.name(id, operand) and og.aug(id, owner) of docs/design/architecture.md;
// METH_FASTCALL functions. One each, although they do much the same. For torch.compile puts another
// function in each one's place, and Python takes built-in functions with one C function for equal.
PyObject* probe(PyObject* module, PyObject* const* args, Py_ssize_t count);
PyObject* name(PyObject* module, PyObject* const* args, Py_ssize_t count);
PyObject* aug(PyObject* module, PyObject* const* args, Py_ssize_t count);

// og.writes(id, callee), og.step(id, operand) and og.micro_batch(id, operand): a probe with a mark.
PyObject* probe_writes(PyObject* module, PyObject* const* args, Py_ssize_t count);
PyObject* probe_step(PyObject* module, PyObject* const* args, Py_ssize_t count);
PyObject* probe_micro_batch(PyObject* module, PyObject* const* args, Py_ssize_t count);

// A stand-in that a broken graph leaves on the stack. What reads an attribute of it is dynamo,
// which asks what it is; a program's own read follows at once upon og(). METH_O; returns the
// stand-in.
PyObject* waiting(PyObject* module, PyObject* stand_in);

// Makes the stand-ins' types and adds them to the module; false with an error set.
bool init_probe(PyObject* module);

}  // namespace opguard
