#include "runtime/torch_api.h"

#include "runtime/object.h"

namespace opguard {
namespace {

// Kept for ever: torch cannot be unloaded, and the interpreter's end frees nothing of ours in time.
PyObject* keep(PyObject* owner, const char* name) { return attribute(owner, name).release(); }

bool still_loading(PyObject* module) {
  Ref spec = attribute(module, "__spec__");
  if (!spec) return false;
  Ref loading = attribute(spec.get(), "_initializing");
  return loading && PyObject_IsTrue(loading.get()) == 1;
}

bool load(TorchApi& api) {
  PyObject* modules = PyImport_GetModuleDict();
  PyObject* torch = PyDict_GetItemString(modules, "torch");
  if (torch == nullptr || still_loading(torch)) return false;
  Ref core = attribute(torch, "_C"), nn = attribute(torch, "nn");
  if (!core || !nn) return false;
  api.tensor_type = keep(torch, "Tensor");
  api.module_type = keep(nn.get(), "Module");
  if (api.tensor_type == nullptr || api.module_type == nullptr) return false;
  api.parameter_type = keep(nn.get(), "Parameter");
  api.generator_type = keep(torch, "Generator");
  api.plain_types[0] = keep(torch, "dtype");
  api.plain_types[1] = keep(torch, "device");
  api.plain_types[2] = keep(torch, "layout");
  api.plain_types[3] = keep(torch, "memory_format");
  api.strided = keep(torch, "strided");
  api.default_dispatch = keep(api.tensor_type, "__torch_dispatch__");
  api.disable_function = keep(core.get(), "DisableTorchFunction");
  api.graph_task_id = keep(core.get(), "_current_graph_task_id");
  api.grad_enabled = keep(torch, "is_grad_enabled");
  return true;
}

}  // namespace

bool TorchApi::is_tensor(PyObject* object) const { return has_type(object, tensor_type); }
bool TorchApi::is_module(PyObject* object) const { return has_type(object, module_type); }

PyObject* TorchApi::optimizer_type() const {
  static PyObject* type = nullptr;
  if (type == nullptr) {
    PyObject* optim = PyDict_GetItemString(PyImport_GetModuleDict(), "torch.optim.optimizer");
    if (optim != nullptr && !still_loading(optim)) type = keep(optim, "Optimizer");
  }
  return type;
}

const TorchApi* torch_api() {
  static TorchApi api;
  static bool loaded = false;
  if (!loaded) loaded = load(api);
  return loaded ? &api : nullptr;
}

TorchFunctionOff::TorchFunctionOff(const TorchApi* torch) {
  if (torch == nullptr || torch->disable_function == nullptr) return;
  Ref context(PyObject_CallNoArgs(torch->disable_function));
  Ref entered;
  if (context) entered = Ref(PyObject_CallMethod(context.get(), "__enter__", nullptr));
  if (entered)
    context_ = context;
  else
    PyErr_Clear();
}

TorchFunctionOff::~TorchFunctionOff() {
  if (!context_) return;
  SavedError saved;
  Ref left(PyObject_CallMethod(context_.get(), "__exit__", "OOO", Py_None, Py_None, Py_None));
  if (!left) PyErr_Clear();
}

CompilerOff::CompilerOff() {
  PyObject* modules = PyImport_GetModuleDict();
  if (PyDict_GetItemString(modules, "torch._dynamo") == nullptr) return;
  Ref at = Ref::borrow(PyDict_GetItemString(modules, "torch"));
  for (const char* name : {"_C", "_dynamo", "eval_frame", "set_eval_frame"})
    if (at) at = attribute(at.get(), name);
  if (!at) return;
  prior_ = Ref(PyObject_CallFunctionObjArgs(at.get(), Py_None, nullptr));
  if (prior_)
    set_ = at;
  else
    PyErr_Clear();
}

CompilerOff::~CompilerOff() {
  if (!set_) return;
  SavedError saved;
  Ref done(PyObject_CallFunctionObjArgs(set_.get(), prior_.get(), nullptr));
  if (!done) PyErr_Clear();
}

bool grad_enabled(const TorchApi& torch) {
  Ref on(torch.grad_enabled ? PyObject_CallNoArgs(torch.grad_enabled) : nullptr);
  if (!on) PyErr_Clear();
  return on.get() == Py_True;
}

bool in_backward(const TorchApi& torch) {
  Ref id(torch.graph_task_id ? PyObject_CallNoArgs(torch.graph_task_id) : nullptr);
  if (!id) {
    PyErr_Clear();
    return false;
  }
  long task = PyLong_AsLong(id.get());
  if (task == -1) PyErr_Clear();
  return task != -1;
}

}  // namespace opguard
