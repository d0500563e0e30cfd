#include "runtime/recorder/parameter_names.h"

#include "runtime/recorder/recorder.h"

namespace opguard {
namespace {

PyObject* g_function = nullptr;

}  // namespace

void set_parameter_names(PyObject* function) {
  Py_XINCREF(function);
  g_function = function;
}

std::vector<std::string> parameter_names(const std::vector<Ref>& tensors) {
  std::vector<std::string> names(tensors.size());
  if (g_function == nullptr || tensors.empty()) return names;
  Ref list(PyList_New(static_cast<Py_ssize_t>(tensors.size())));
  for (size_t i = 0; list && i < tensors.size(); ++i)
    PyList_SetItem(list.get(), static_cast<Py_ssize_t>(i), Ref(tensors[i]).release());
  CompilerOff off;
  Ref found(list ? PyObject_CallFunctionObjArgs(g_function, list.get(), nullptr) : nullptr);
  if (!found || !PyList_Check(found.get()) ||
      PyList_Size(found.get()) != static_cast<Py_ssize_t>(tensors.size())) {
    recorder().fault("parameters have no names");
    return names;
  }
  for (size_t i = 0; i < names.size(); ++i)
    names[i] = utf8(PyList_GetItem(found.get(), static_cast<Py_ssize_t>(i)));
  return names;
}

}  // namespace opguard
