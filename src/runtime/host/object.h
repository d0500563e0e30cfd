// runtime/host/object.h: questions about Python objects that run none of the program's code.
#pragma once

#include <string_view>

#include "runtime/host/py.h"

namespace opguard {

// isinstance without __instancecheck__ and __class__.
inline bool has_type(PyObject* object, PyObject* type) {
  return type != nullptr &&
         PyType_IsSubtype(Py_TYPE(object), reinterpret_cast<PyTypeObject*>(type));
}

// The interpreter's own types that the limited API does not name; borrowed for ever.
struct Types {
  PyObject* function = nullptr;        // def
  PyObject* builtin = nullptr;         // built-in function or bound method of a C type
  PyObject* method = nullptr;          // bound method of a class
  PyObject* method_wrapper = nullptr;  // bound slot, such as (1).__add__
};
const Types& types();

// A bound method's receiver; nullptr for anything else, and where it is a module or a class.
Ref receiver_of(PyObject* callee);

// "torch.nn" is in "torch".
inline bool in_package(std::string_view module, std::string_view package) {
  return module.starts_with(package) &&
         (module.size() == package.size() || module[package.size()] == '.');
}

// A numpy array or numpy scalar, if numpy was imported.
bool is_numpy_array(PyObject* object);
bool is_numpy_scalar(PyObject* object);

}  // namespace opguard
