// What all stand-ins share: fields by which they can be told (`_opguard_id`, `_opguard_real`),
// their part in garbage collection, weak references.
//
// Every type takes part in collection. An operand may lead back to what holds its stand-in, as a
// generator does that is stopped inside of `with og(id, self)`.
#include "runtime/probe/stand_in.h"

#include <structmember.h>

#include <cstddef>
#include <initializer_list>

namespace opguard {

// Empty: it is an attribute of the operand.
Ref own_field(PyObject* self, PyObject* name) {
  StandIn* object = stand_in(self);
  const std::string_view text = utf8(name);
  if (!text.starts_with("_opguard_")) return {};
  if (text == "_opguard_id") return Ref::borrow(object->id);
  if (text == "_opguard_real") return Ref::borrow(object->real);
  if (text == "_opguard_mark") return Ref(PyLong_FromLong(static_cast<long>(object->mark)));
  return {};
}

void free_stand_in(PyObject* self) {
  PyObject_GC_UnTrack(self);
  StandIn* object = stand_in(self);
  if (object->weak != nullptr) PyObject_ClearWeakRefs(self);
  for (PyObject* held : {object->id, object->real, object->more, object->exit}) Py_XDECREF(held);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

int traverse_stand_in(PyObject* self, visitproc visit, void* arg) {
  StandIn* object = stand_in(self);
  Py_VISIT(Py_TYPE(self));
  for (PyObject* held : {object->id, object->real, object->more, object->exit}) Py_VISIT(held);
  return 0;
}

PyObject* self_of(PyObject* self) {
  Py_INCREF(self);
  return self;
}

PyMemberDef g_stand_in_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(StandIn, weak), READONLY, nullptr}, {}};

PyTypeObject* add_stand_in_type(PyObject* module, const char* name, int size, PyType_Slot* slots,
                                unsigned long flags) {
  flags |= Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
  PyType_Spec spec = {name, size, 0, static_cast<unsigned>(flags), slots};
  auto* type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return type != nullptr && PyModule_AddType(module, type) == 0 ? type : nullptr;
}

}  // namespace opguard
