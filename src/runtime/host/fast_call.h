// runtime/host/fast_call.h: getters and methods without arguments of C types, found once and then
// called without a look-up. They are what is asked of every tensor.
#pragma once

#include "runtime/host/py.h"

namespace opguard {

// An attribute that a C type computes, such as Tensor._version.
class Getter {
 public:
  Getter() = default;
  Getter(PyObject* type, const char* name) : descriptor_(attribute(type, name).release()) {
    if (descriptor_ != nullptr)
      get_ = reinterpret_cast<descrgetfunc>(PyType_GetSlot(Py_TYPE(descriptor_), Py_tp_descr_get));
  }
  explicit operator bool() const { return get_ != nullptr; }
  // Of an object of the type it was made with; none with an error set where the getter raises.
  Ref operator()(PyObject* object) const {
    return Ref(get_(descriptor_, object, reinterpret_cast<PyObject*>(Py_TYPE(object))));
  }

 private:
  PyObject* descriptor_ = nullptr;  // for ever
  descrgetfunc get_ = nullptr;
};

// A C function that takes no arguments but its receiver.
class Method {
 public:
  Method() = default;
  // bound: a built-in method of any object of the type, or a built-in function.
  explicit Method(PyObject* bound) {
    if (bound == nullptr || !PyObject_TypeCheck(bound, &PyCFunction_Type)) return;
    const int flags = PyCFunction_GetFlags(bound) & ~(METH_CLASS | METH_STATIC | METH_COEXIST);
    if (flags == METH_NOARGS || flags == METH_VARARGS || flags == (METH_VARARGS | METH_KEYWORDS)) {
      function_ = PyCFunction_GetFunction(bound);
      flags_ = flags;
    }
  }
  explicit operator bool() const { return function_ != nullptr; }
  // None with an error set where it raises. self: an object of the type; a function's own self.
  Ref operator()(PyObject* self) const {
    if (flags_ == METH_NOARGS) return Ref(function_(self, nullptr));
    Ref none(PyTuple_New(0));
    if (!none) return {};
    if (flags_ == METH_VARARGS) return Ref(function_(self, none.get()));
    auto with_keywords =
        reinterpret_cast<PyCFunctionWithKeywords>(reinterpret_cast<void (*)()>(function_));
    return Ref(with_keywords(self, none.get(), nullptr));
  }

 private:
  PyCFunction function_ = nullptr;
  int flags_ = 0;
};

}  // namespace opguard
