#include "runtime/host/hook_numbers.h"

#include <cstdint>

namespace opguard {
namespace {

constexpr int64_t kFirst = int64_t{1} << 40;

// torch's class of handles, which lives as long as the process; null before torch is imported.
PyObject* handle_class() {
  static PyObject* known = nullptr;
  if (known == nullptr) {
    PyObject* modules = PyImport_GetModuleDict();  // borrowed
    PyObject* hooks = PyDict_GetItemString(modules, "torch.utils.hooks");
    if (hooks != nullptr) known = attribute(hooks, "RemovableHandle").release();
  }
  return known;
}

}  // namespace

Ref register_own_hook(PyObject* node, const char* method, PyObject* hook) {
  static int64_t next = kFirst;
  PyObject* handles = handle_class();
  Ref programs = handles != nullptr ? attribute(handles, "next_id") : Ref();
  Ref own(programs ? PyLong_FromLongLong(next++) : nullptr);
  PyObject* next_id = name_object("next_id");
  if (own && PyObject_SetAttr(handles, next_id, own.get()) != 0) PyErr_Clear();
  Ref handle = call_method(node, method, hook);
  PyErr_Clear();
  if (programs && PyObject_SetAttr(handles, next_id, programs.get()) != 0) PyErr_Clear();
  return handle;
}

}  // namespace opguard
