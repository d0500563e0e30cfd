// Types are asked once and kept, with a reference that is never given back. The process has them as
// long as it runs. numpy's are looked for in what has been imported. Nothing is imported for them.
#include "runtime/host/object.h"

namespace opguard {
namespace {

PyObject* type_from(PyObject* types_module, const char* name) {
  return attribute(types_module, name).release();
}

// A class of numpy's, once numpy has been imported whole.
PyObject* numpy_type(const char* name) {
  PyObject* numpy = PyDict_GetItemString(PyImport_GetModuleDict(), "numpy");
  return numpy == nullptr ? nullptr : attribute(numpy, name).release();
}

}  // namespace

const Types& types() {
  static const Types found = [] {
    Types t;
    Ref module(PyImport_ImportModule("types"));
    if (!module) {
      PyErr_Clear();
      return t;
    }
    t.function = type_from(module.get(), "FunctionType");
    t.builtin = type_from(module.get(), "BuiltinFunctionType");
    t.method = type_from(module.get(), "MethodType");
    t.method_wrapper = type_from(module.get(), "MethodWrapperType");
    return t;
  }();
  return found;
}

// The x of x.append, of [1].__add__ and of model.forward. Empty for functions of modules and for
// classmethods: what they hold is no object that is worked on.
Ref receiver_of(PyObject* callee) {
  const Types& t = types();
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(callee));
  if (type != t.builtin && type != t.method && type != t.method_wrapper) return {};
  Ref self =
      type == t.builtin ? Ref::borrow(PyCFunction_GetSelf(callee)) : attribute(callee, "__self__");
  if (!self || self.get() == Py_None || PyModule_Check(self.get()) || PyType_Check(self.get()))
    return {};
  return self;
}

bool is_numpy_array(PyObject* object) {
  static PyObject* array = nullptr;
  if (array == nullptr) array = numpy_type("ndarray");
  return has_type(object, array);
}

bool is_numpy_scalar(PyObject* object) {
  static PyObject* generic = nullptr;
  if (generic == nullptr) generic = numpy_type("generic");
  return has_type(object, generic);
}

std::optional<uint64_t> number(PyObject* value) {
  if (value == nullptr || !PyLong_Check(value)) {
    PyErr_Clear();
    return {};
  }
  const unsigned long long n = PyLong_AsUnsignedLongLongMask(value);
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return {};
  }
  return n;
}

Ref answer(PyObject* object, const char* method) {
  Ref said = call_method(object, method);
  if (!said) PyErr_Clear();
  return said;
}

}  // namespace opguard
