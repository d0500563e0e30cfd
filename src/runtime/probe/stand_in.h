// runtime/probe/stand_in.h: the objects that stand for an operand during one operator. Each applies
// the program's operator to the real operand, from C and so without a Python frame, and passes
// results and errors on untouched.
//
//   og(id, x)          a probe (operand.cc): calls, arithmetic, items, attributes, text
//   iter(og(id, x))    its items (iteration.cc), each of them an event
//   with og(id, x)     what a context's two methods do is an event each (contexts.cc)
//   await og(id, x)    each step is the operator's, what it returns its output (awaiting.cc)
//   og.aug(id, x)      a place (place.cc): the owner of what an augmented assignment changes
#pragma once

#include "runtime/host/py.h"
#include "runtime/host/vector_call.h"
#include "runtime/probe/operation.h"

namespace opguard {

// What all of them hold. They live for one operator, on the stack. But a generator, a coroutine or
// a context keeps its stack for long, and its owner may be what the operand holds. So they take
// part in garbage collection. A cycle is broken elsewhere, as none can be made of them alone.
struct StandIn {
  PyObject_HEAD PyObject* id;
  PyObject* real;  // the operand, or what is stepped through
  PyObject* more;  // of the kind's own; or nullptr
  PyObject* exit;  // of a context: its bound __exit__ or __aexit__; or nullptr
  PyObject* weak;  // dynamo's guards want weak references
  Mark mark;
  bool waits;       // behind a graph break
  VectorCall call;  // of a probe
};
inline StandIn* stand_in(PyObject* self) { return reinterpret_cast<StandIn*>(self); }

// T: StandIn, or a kind with fields of its own, which are then to be set.
template <typename T = StandIn>
T* new_stand_in(PyTypeObject* type, PyObject* id, PyObject* real, PyObject* more, Mark mark) {
  auto* object = PyObject_GC_New(T, type);
  if (object == nullptr) return nullptr;
  Py_INCREF(id);
  Py_INCREF(real);
  Py_XINCREF(more);
  object->id = id;
  object->real = real;
  object->more = more;
  object->exit = nullptr;
  object->weak = nullptr;
  object->mark = mark;
  object->waits = false;
  object->call = nullptr;
  PyObject_GC_Track(object);
  return object;
}

inline PyObject* make_stand_in(PyTypeObject* type, PyObject* id, PyObject* real, Mark mark) {
  return reinterpret_cast<PyObject*>(new_stand_in(type, id, real, nullptr, mark));
}

// -- slots that all kinds share

void free_stand_in(PyObject* self);
int traverse_stand_in(PyObject* self, visitproc visit, void* arg);
extern PyMemberDef g_stand_in_members[];
PyObject* self_of(PyObject* self);  // of iterators and what is awaited

// What torch.compile asks of a stand-in that waits on the stack of a function whose graph broke
// (python/opguard/compiled/trace.py); no name of a program's begins so. None where `name` is
// another's.
Ref own_field(PyObject* self, PyObject* name);

template <getattrofunc function>
PyObject* attribute_of(PyObject* self, PyObject* name) {
  Ref own = own_field(self, name);
  return own ? own.release() : function(self, name);
}

template <typename F>
PyType_Slot slot(int id, F function) {
  return {id, reinterpret_cast<void*>(function)};
}

// Adds the type to the module; nullptr with an error set.
PyTypeObject* add_stand_in_type(PyObject* module, const char* name, int size, PyType_Slot* slots,
                                unsigned long flags = 0);

// -- kinds

// more: what an augmented item or attribute was read from.
PyObject* make_probe(PyObject* id, PyObject* real, PyObject* more, Mark mark = Mark::none);
bool is_probe(PyObject* object);
int set_item_of(PyObject* id, Mark mark, PyObject* real, PyObject* key, PyObject* value);

PyObject* iterate_operand(PyObject* self);  // iter()

// An awaitable that goes on as `real`; `real` itself where it is none. Steals nothing.
PyObject* awaited(PyObject* id, PyObject* real, Mark mark);
PyObject* await_operand(PyObject* self);
PyObject* iterate_operand_async(PyObject* self);  // aiter()

PyObject* enter_operand(PyObject* self, PyObject* none);
PyObject* exit_operand(PyObject* self, PyObject* args);
PyObject* enter_operand_async(PyObject* self, PyObject* none);
PyObject* exit_operand_async(PyObject* self, PyObject* args);

PyObject* make_place(PyObject* id, PyObject* real);
bool is_place(PyObject* object);

// Make the types and add them to the module; false with an error set.
bool init_operand(PyObject* module);
bool init_iteration(PyObject* module);
bool init_awaiting(PyObject* module);
bool init_place(PyObject* module);

}  // namespace opguard
