// runtime/host/special.h: special methods as the interpreter looks them up: on the type, not the
// object.
#pragma once

#include "runtime/host/object.h"

namespace opguard {

// The method `name` of the object's type, bound; an empty Ref without an error where there is none.
Ref special_method(PyObject* object, const char* name);

// A slot of the object's type; nullptr where it has none.
template <typename F>
F type_slot(PyObject* object, int slot) {
  return reinterpret_cast<F>(PyType_GetSlot(Py_TYPE(object), slot));
}

// Opcode that the running frame is at, "" if that cannot be told.
std::string running_opcode();

}  // namespace opguard
