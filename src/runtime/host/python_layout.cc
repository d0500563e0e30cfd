// A field that was not found has no offset, and is not in the dict. "trusted": whether what is read
// at the offsets is used.
#include "runtime/host/python_layout.h"

#include "runtime/host/tensor_layout.h"
#include "runtime/host/torch_api.h"

namespace opguard {

PyObject* tensor_layout_of(PyObject*, PyObject* probes) {
  TensorLayout& layout = tensor_layout();
  if (probes != Py_None) layout.find(probes);
  Ref all(PyDict_New());
  if (!all) return nullptr;
  for (const char* field : {"object", "sizes", "storage_offset", "numel", "type", "storage",
                            "autograd", "version", "keys", "data", "count", "check"}) {
    const int64_t offset = layout.offset(field);
    Ref number(PyLong_FromLongLong(offset));
    if (offset >= 0 && (!number || PyDict_SetItemString(all.get(), field, number.get()) != 0))
      return nullptr;
  }
  if (PyDict_SetItemString(all.get(), "trusted", layout.trusted() ? Py_True : Py_False) != 0)
    return nullptr;
  return all.release();
}

}  // namespace opguard
