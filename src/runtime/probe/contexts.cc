// `with og(id, x)` and `async with`: two events, one as x is entered and one as it is left.
//
//   look up     __enter__ and __exit__ of x's type, both before the first is called
//   enter       an operator that reads x; its result is the block's `as`
//   exit        an operator that reads x; what is raised through the block is the program's
//
// The errors for what has no such methods are the interpreter's own, by its version.
//
// Counterexample: what happens inside of the block. It is no part of either event.
#include "runtime/host/special.h"
#include "runtime/probe/stand_in.h"

namespace opguard {
namespace {

bool knows_missed_exit() {
  static const bool knows = [] {
    PyObject* version = PySys_GetObject("hexversion");
    return version != nullptr && PyLong_AsLong(version) >= 0x030b0000;
  }();
  return knows;
}

// Both methods are looked up before the first is called, as the interpreter does; up to 3.10 what
// is missing is an attribute.
bool look_up_context(StandIn* p, const char* enter, const char* exit, const char* protocol,
                     Ref& method) {
  method = special_method(p->real, enter);
  Ref leave = method ? special_method(p->real, exit) : Ref();
  if (PyErr_Occurred()) return false;
  if (!method || !leave) {
    if (!knows_missed_exit())
      PyErr_SetString(PyExc_AttributeError, method ? exit : enter);
    else if (!method)
      PyErr_Format(PyExc_TypeError, "'%.200s' object does not support the %s protocol",
                   type_name(p->real).c_str(), protocol);
    else
      PyErr_Format(PyExc_TypeError,
                   "'%.200s' object does not support the %s protocol (missed %s method)",
                   type_name(p->real).c_str(), protocol, exit);
    return false;
  }
  Py_XDECREF(p->exit);
  p->exit = leave.release();
  return true;
}

PyObject* not_entered() {
  PyErr_SetString(PyExc_RuntimeError, "a context is left that was not entered");
  return nullptr;
}

}  // namespace

PyObject* enter_operand(PyObject* self, PyObject*) {
  StandIn* p = stand_in(self);
  Ref method;
  if (!look_up_context(p, "__enter__", "__exit__", "context manager", method)) return nullptr;
  Operation operation(p->id, p->mark);
  operation.input("self", p->real);
  operation.ready();
  return operation.finish(PyObject_CallNoArgs(method.get()));
}

PyObject* exit_operand(PyObject* self, PyObject* args) {
  StandIn* p = stand_in(self);
  if (p->exit == nullptr) return not_entered();
  // What is raised through the block is the program's, and what leaving it does alone is recorded.
  Operation operation(p->id, p->mark);
  operation.input("self", p->real);
  operation.ready();
  return operation.finish(PyObject_Call(p->exit, args, nullptr));
}

PyObject* enter_operand_async(PyObject* self, PyObject*) {
  StandIn* p = stand_in(self);
  Ref method;
  if (!look_up_context(p, "__aenter__", "__aexit__", "asynchronous context manager", method))
    return nullptr;
  Ref result(PyObject_CallNoArgs(method.get()));
  return result ? awaited(p->id, result.get(), p->mark) : nullptr;
}

PyObject* exit_operand_async(PyObject* self, PyObject* args) {
  StandIn* p = stand_in(self);
  if (p->exit == nullptr) return not_entered();
  Ref result(PyObject_Call(p->exit, args, nullptr));
  return result ? awaited(p->id, result.get(), p->mark) : nullptr;
}

}  // namespace opguard
