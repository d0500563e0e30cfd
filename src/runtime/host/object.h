// runtime/host/object.h: questions about Python objects that run none of the program's code.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/host/py.h"

namespace opguard {

// isinstance without __instancecheck__ and __class__.
inline bool has_type(PyObject* object, PyObject* type) {
  return type != nullptr &&
         PyType_IsSubtype(Py_TYPE(object), reinterpret_cast<PyTypeObject*>(type));
}

// Of what is an int; none, with no error set, of anything else.
std::optional<uint64_t> number(PyObject* value);
inline std::optional<uint64_t> number(PyObject* object, const char* name) {
  return number(attribute(object, name).get());
}

// What a method without arguments answers; null, with no error set, where it does not exist or
// raises.
Ref answer(PyObject* object, const char* method);
inline bool says_true(PyObject* object, const char* method) {
  return answer(object, method).get() == Py_True;
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
