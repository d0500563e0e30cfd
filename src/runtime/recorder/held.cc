// Modules are walked by their own tables (_parameters, _buffers, _modules), which are plain dicts:
// no method of the program runs.
//
//   module      param:layers.0.weight, grad:layers.0.weight, param:bn.running_mean
//   optimizer   param:layers.0.weight, grad:..., state:layers.0.weight.exp_avg
//   an object with a list `params` of leaves     its parameters, as an optimizer of one's own
//
// A parameter that no module names has its number: "param0".
#include "runtime/recorder/held.h"

#include "record/record.h"
#include "runtime/host/object.h"
#include "runtime/recorder/parameter_names.h"
#include "runtime/recorder/values.h"

namespace opguard {
namespace {

bool is_leaf(const TorchApi& torch, PyObject* object) {
  if (!torch.is_tensor(object)) return false;
  Ref wants = attribute(object, "requires_grad"), made = attribute(object, "grad_fn");
  return wants.get() == Py_True && made.get() == Py_None;
}

// The items of a list or tuple if every one is a leaf that takes a gradient.
std::vector<Ref> leaves(const TorchApi& torch, PyObject* list) {
  std::vector<Ref> found;
  if (list == nullptr || !(PyList_Check(list) || PyTuple_Check(list))) return found;
  bool tuple = PyTuple_Check(list);
  Py_ssize_t n = tuple ? PyTuple_Size(list) : PyList_Size(list);
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = tuple ? PyTuple_GetItem(list, i) : PyList_GetItem(list, i);
    if (!is_leaf(torch, item)) return {};
    found.push_back(Ref::borrow(item));
  }
  return found;
}

void add_gradient(std::vector<Held>& to, const std::string& name, PyObject* param) {
  Ref grad = attribute(param, "grad");
  if (grad && grad.get() != Py_None) to.push_back({"grad" + name, grad, 0});
}

// Each parameter's gradient stands behind it; buffers have none.
void walk_module(std::vector<Held>& to, PyObject* module, const std::string& prefix, int depth) {
  for (const char* table : {"_parameters", "_buffers"}) {
    Ref dict = attribute(module, table);
    if (!dict || !PyDict_Check(dict.get())) continue;
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(dict.get(), &at, &key, &value);) {
      if (value == Py_None) continue;
      std::string name = ":" + prefix + std::string(utf8(key));
      to.push_back({"param" + name, Ref::borrow(value), kParameter});
      if (table[1] == 'p') add_gradient(to, name, value);
    }
  }
  Ref children = attribute(module, "_modules");
  if (!children || !PyDict_Check(children.get()) || depth >= kMaxModuleDepth) return;
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(children.get(), &at, &key, &value);)
    if (value != Py_None) walk_module(to, value, prefix + std::string(utf8(key)) + ".", depth + 1);
}

}  // namespace

bool is_optimizer(const TorchApi& torch, PyObject* object) {
  return has_type(object, torch.optimizer_type());
}

Ref optimizer_field(const TorchApi& torch, PyObject* optimizer, const char* name) {
  if (is_optimizer(torch, optimizer)) return attribute(optimizer, name);
  Ref fields(PyObject_GenericGetDict(optimizer, nullptr));
  if (!fields) PyErr_Clear();
  if (!fields || !PyDict_Check(fields.get())) return {};
  return Ref::borrow(PyDict_GetItemString(fields.get(), name));
}

// In the order of its groups.
std::vector<Parameter> parameters_of(const TorchApi& torch, PyObject* optimizer) {
  std::vector<Ref> tensors;
  Ref groups = optimizer_field(torch, optimizer, "param_groups");
  for (Py_ssize_t g = 0; groups && PyList_Check(groups.get()) && g < PyList_Size(groups.get());
       ++g) {
    PyObject* group = PyList_GetItem(groups.get(), g);
    PyObject* params = PyDict_Check(group) ? PyDict_GetItemString(group, "params") : nullptr;
    for (Py_ssize_t i = 0; params && PyList_Check(params) && i < PyList_Size(params); ++i)
      tensors.push_back(Ref::borrow(PyList_GetItem(params, i)));
  }
  if (!groups)
    for (const char* field : {"params", "parameters"})
      if (tensors.empty()) tensors = leaves(torch, optimizer_field(torch, optimizer, field).get());
  std::vector<std::string> names = parameter_names(tensors);
  std::vector<Parameter> all;
  for (size_t i = 0; i < tensors.size(); ++i)
    all.push_back({tensors[i], names[i].empty() ? std::to_string(i) : ":" + names[i]});
  return all;
}

std::vector<Held> held_tensors(const TorchApi& torch, PyObject* object, bool state) {
  std::vector<Held> all;
  if (torch.is_module(object)) {
    walk_module(all, object, "", 0);
    return all;
  }
  if (!is_optimizer(torch, object)) return all;
  Ref states = state ? attribute(object, "state") : Ref();
  for (const Parameter& param : parameters_of(torch, object)) {
    all.push_back({"param" + param.name, param.tensor, kParameter});
    add_gradient(all, param.name, param.tensor.get());
    if (!states || !PyDict_Check(states.get())) continue;
    // Never a defaultdict's insertion.
    PyObject* mine = PyDict_GetItemWithError(states.get(), param.tensor.get());
    if (mine == nullptr) PyErr_Clear();
    if (mine == nullptr || !PyDict_Check(mine)) continue;
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(mine, &at, &key, &value);)
      if (torch.is_tensor(value))
        all.push_back({"state" + param.name + "." + std::string(utf8(key)), Ref::borrow(value), 0});
  }
  return all;
}

}  // namespace opguard
