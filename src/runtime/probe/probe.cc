#include "runtime/probe/probe.h"

#include "runtime/host/torch_api.h"
#include "runtime/probe/stand_in.h"

namespace opguard {
namespace {

bool are_two(Py_ssize_t count) {
  if (count == 2) return true;
  PyErr_SetString(PyExc_TypeError, "a probe takes a boundary id and an operand");
  return false;
}

// Between the steps of a window most operands are used at once, or not at all: the program gets
// them as they are. Counterexample: an iterator, from which a step to come may take.
bool is_used_up_at_once(PyObject* operand) {
  static PyTypeObject* const* types = [] {
    static PyTypeObject* found[3] = {};
    const Ref builtins(PyImport_ImportModule("types"));
    size_t at = 0;
    for (const char* name : {"FunctionType", "BuiltinFunctionType", "MethodType"}) {
      const Ref type(builtins ? PyObject_GetAttrString(builtins.get(), name) : nullptr);
      if (type) found[at++] = reinterpret_cast<PyTypeObject*>(Ref(type).release());
    }
    PyErr_Clear();
    return found;
  }();
  PyTypeObject* const type = Py_TYPE(operand);
  if (type == types[0] || type == types[1] || type == types[2]) return true;
  const TorchApi* torch = torch_api();
  return torch != nullptr && torch->plain(operand);
}

}  // namespace

// Of an operand; the only one that may hand the operand back as it is.
PyObject* probe(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (!are_two(count)) return nullptr;
  if (!recorder().on_operators() && is_used_up_at_once(args[1])) {
    Py_INCREF(args[1]);
    return args[1];
  }
  return make_probe(args[0], args[1], nullptr);
}

// Of an operand that the program calls by a name.
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

// The owner of what an augmented assignment changes. Between the steps of a window it is the owner
// itself.
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
