#include "runtime/probe/probe.h"

#include "runtime/probe/stand_in.h"

namespace opguard {
namespace {

bool are_two(Py_ssize_t count) {
  if (count == 2) return true;
  PyErr_SetString(PyExc_TypeError, "a probe takes a boundary id and an operand");
  return false;
}

}  // namespace

PyObject* probe(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return are_two(count) ? make_probe(args[0], args[1], nullptr) : nullptr;
}

PyObject* name(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return are_two(count) ? make_probe(args[0], args[1], nullptr) : nullptr;
}

PyObject* probe_writes(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return are_two(count) ? make_probe(args[0], args[1], nullptr, Mark::writes) : nullptr;
}

PyObject* probe_step(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return are_two(count) ? make_probe(args[0], args[1], nullptr, Mark::step) : nullptr;
}

PyObject* probe_micro_batch(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return are_two(count) ? make_probe(args[0], args[1], nullptr, Mark::micro_batch) : nullptr;
}

PyObject* aug(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (!are_two(count)) return nullptr;
  PyObject *id = args[0], *real = args[1];
  if (recorder().on_operators()) return make_place(id, real);
  Py_INCREF(real);
  return real;
}

PyObject* waiting(PyObject*, PyObject* object) {
  if (is_probe(object) || is_place(object)) stand_in(object)->waits = true;
  Py_INCREF(object);
  return object;
}

bool init_probe(PyObject* module) {
  return init_operand(module) && init_iteration(module) && init_place(module) &&
         init_awaiting(module);
}

}  // namespace opguard
