// A name is asked of Python once for a tensor. It is kept by address beside a weak reference, since
// another tensor may come to lie at that address.
//
// Entries of dead tensors go when 1,024 are there, or twice as many as lived at the last cleaning.
// Of a list with one that is not known yet all are asked for, in one call.
#include "runtime/recorder/parameter_names.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "runtime/recorder/recorder.h"

namespace opguard {
namespace {

PyObject* g_function = nullptr;

// What the function has named; a name once given stays.
class Named {
 public:
  // nullptr: not this tensor, or without a name so far.
  const std::string* find(PyObject* tensor) const {
    auto at = known_.find(tensor);
    return at != known_.end() && refers(at->second, tensor) ? &at->second.name : nullptr;
  }
  void add(PyObject* tensor, const std::string& name) {
    if (name.empty()) return;
    if (known_.size() >= limit_) {
      std::erase_if(known_, [](const auto& entry) { return !lives(entry.second); });
      limit_ = std::max(limit_, 2 * known_.size());
    }
    Ref weak(PyWeakref_NewRef(tensor, nullptr));
    if (weak) known_[tensor] = {std::move(weak), name};
    PyErr_Clear();
  }

 private:
  struct Entry {
    Ref weak;
    std::string name;
  };
  static bool refers(const Entry& entry, PyObject* tensor) {
    return PyWeakref_GetObject(entry.weak.get()) == tensor;
  }
  static bool lives(const Entry& entry) { return !refers(entry, Py_None); }

  std::unordered_map<PyObject*, Entry> known_;
  size_t limit_ = 1024;
};

Named& named() {
  static auto* all = new Named;
  return *all;
}

bool all_named(const std::vector<Ref>& tensors, std::vector<std::string>& names) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string* name = named().find(tensors[i].get());
    if (name == nullptr) return false;
    names[i] = *name;
  }
  return true;
}

}  // namespace

void set_parameter_names(PyObject* function) {
  Py_XINCREF(function);
  g_function = function;
}

std::vector<std::string> parameter_names(const std::vector<Ref>& tensors) {
  std::vector<std::string> names(tensors.size());
  if (g_function == nullptr || tensors.empty() || all_named(tensors, names)) return names;
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
  for (size_t i = 0; i < names.size(); ++i) {
    names[i] = utf8(PyList_GetItem(found.get(), static_cast<Py_ssize_t>(i)));
    named().add(tensors[i].get(), names[i]);
  }
  return names;
}

}  // namespace opguard
