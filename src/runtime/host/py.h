// runtime/host/py.h: CPython's stable ABI of 3.10, owned references and saved errors.
//
// One extension serves Python 3.10 to 3.13: nothing outside the limited API may be used.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string>
#include <string_view>
#include <utility>

namespace opguard {

// An owned reference, or none.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) : object_(owned) {}
  static Ref borrow(PyObject* object) {
    Py_XINCREF(object);
    return Ref(object);
  }
  Ref(const Ref& other) : object_(other.object_) { Py_XINCREF(object_); }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }

  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// The text as Python's one string of it, borrowed for ever: a type's cache of attributes knows no
// other. Null with an error set without memory. Few texts are asked for, most of them literals.
PyObject* name_object(const char* text);

// The attribute, or none with no error set.
inline Ref attribute(PyObject* object, const char* name) {
  PyObject* known = name_object(name);
  Ref value(known != nullptr ? PyObject_GetAttr(object, known) : nullptr);
  if (!value) PyErr_Clear();
  return value;
}

// What a method answers to at most one argument; none with the error set that it raised.
inline Ref call_method(PyObject* object, const char* name, PyObject* argument = nullptr) {
  PyObject* known = name_object(name);
  return Ref(known != nullptr ? PyObject_CallMethodObjArgs(object, known, argument, nullptr)
                              : nullptr);
}

// "" (and no error) when it is not a string or has no UTF-8 form.
inline std::string_view utf8(PyObject* object) {
  if (object == nullptr || !PyUnicode_Check(object)) return {};
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(object, &size);
  if (text == nullptr) {
    PyErr_Clear();
    return {};
  }
  return {text, static_cast<size_t>(size)};
}

inline std::string utf8_attribute(PyObject* object, const char* name) {
  return std::string(utf8(attribute(object, name).get()));
}

inline std::string type_name(PyObject* object) {
  return utf8_attribute(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__name__");
}

// The error in flight is the program's: it is put aside while our own code runs, and back after.
class SavedError {
 public:
  SavedError() { PyErr_Fetch(&type_, &value_, &traceback_); }
  SavedError(const SavedError&) = delete;
  SavedError& operator=(const SavedError&) = delete;
  ~SavedError() { PyErr_Restore(type_, value_, traceback_); }
  bool set() const { return type_ != nullptr; }

 private:
  PyObject *type_ = nullptr, *value_ = nullptr, *traceback_ = nullptr;
};

}  // namespace opguard
