// Looks torch's functions up once, and keeps them for ever: torch cannot be unloaded.
//
//   import torch begins     `torch` is in sys.modules, its parts are not: torch_api() is null
//   import torch ended      all is looked up at the first question; what this torch lacks is null
//
// And four guards, each of which puts back on its way out what it found: TorchFunctionOff,
// TracerOff, CompilerOff and SavedError. While they live, our questions run none of the program's
// code.
//
//   with a mode on          TorchFunctionOff enters torch's own context
//   usually                 nothing is entered; the first subclass that is met makes up for it
//
// Counterexample: to enter it always. It is a Python object, made and called twice for each
// operator.
//
// In a question, an error of Python's is cleared at once. Otherwise the program would meet it
// later.
#include "runtime/host/torch_api.h"

#include "runtime/host/object.h"

namespace opguard {
namespace {

// Kept for ever: torch cannot be unloaded, and the interpreter's end frees nothing of ours in time.
PyObject* keep(PyObject* owner, const char* name) { return attribute(owner, name).release(); }

// A module is in sys.modules from the beginning of its import. Its parts come later.
bool still_loading(PyObject* module) {
  Ref spec = attribute(module, "__spec__");
  if (!spec) return false;
  Ref loading = attribute(spec.get(), "_initializing");
  return loading && PyObject_IsTrue(loading.get()) == 1;
}

TorchApi g_api;

// A method of torch.Tensor as the C function it is; nothing where the program has put its own.
Method method_of(PyObject* tensor, const char* name) {
  Ref bound = attribute(tensor, name);
  return Method(bound.get());
}

void load_of_tensor(TorchApi& api) {
  api.version = Getter(api.tensor_type, "_version");
  api.grad_fn = Getter(api.tensor_type, "grad_fn");
  api.requires_grad = Getter(api.tensor_type, "requires_grad");
  Ref capsule = attribute(api.tensor_type, "__dlpack_c_exchange_api__");
  if (!capsule) return;
  auto* exchange = static_cast<const DlpackExchange*>(
      PyCapsule_GetPointer(capsule.get(), "dlpack_exchange_api"));
  if (exchange == nullptr) PyErr_Clear();
  if (exchange != nullptr && exchange->major == 1 && exchange->tensor_of != nullptr && api.version)
    api.dlpack = exchange;
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
  api.function_modes = keep(core.get(), "_len_torch_function_stack");
  api.set_tracing = keep(core.get(), "_set_tracing_state");
  api.tracing = keep(core.get(), "_get_tracing_state");
  load_of_tensor(api);
  api.native.load();
  return true;
}

}  // namespace

// A subclass may run code of its own at each question, from here on: that is silenced at once.
bool TorchApi::is_tensor(PyObject* object) const {
  if (plain(object)) return true;
  if (!has_type(object, tensor_type)) return false;
  TorchFunctionOff::silence();
  return true;
}
bool TorchApi::is_module(PyObject* object) const { return has_type(object, module_type); }

PyObject* TorchApi::optimizer_type() const {
  static PyObject* type = nullptr;
  if (type == nullptr) {
    PyObject* optim = PyDict_GetItemString(PyImport_GetModuleDict(), "torch.optim.optimizer");
    if (optim != nullptr && !still_loading(optim)) type = keep(optim, "Optimizer");
  }
  return type;
}

const TorchApi* find_torch_api() {
  if (load(g_api)) g_torch_api = &g_api;
  return g_torch_api;
}

bool torch_native(bool allow) {
  const bool trusted = torch_api() != nullptr && g_api.native.trusted();
  if (!allow) {
    g_api.native.distrust();
    g_api.layout.distrust();
  }
  return trusted && allow;
}

TensorLayout& tensor_layout() { return g_api.layout; }

// Called with the first plain tensors: what is to be trusted is compared with Python's answers
// there.
void bind_methods(PyObject* tensor) {
  g_api.native.meet(tensor);
  g_api.layout.meet(tensor);
  static bool bound = false;
  if (std::exchange(bound, true)) return;
  g_api.is_neg = method_of(tensor, "is_neg");
  g_api.untyped_storage = method_of(tensor, "untyped_storage");
  if (!g_api.is_neg) g_api.dlpack = nullptr;
}

namespace {

bool g_subclass_met = false;
thread_local TorchFunctionOff* t_innermost = nullptr;

// True where it cannot be told: then torch's own context is entered, which is slower and never
// wrong.
bool modes_on(const TorchApi& torch) {
  if (torch.native.function_modes != nullptr) return torch.native.function_modes() != 0;
  if (torch.function_modes == nullptr) return true;
  static const Method depth_of(torch.function_modes);
  Ref depth = depth_of ? depth_of(PyCFunction_GetSelf(torch.function_modes))
                       : Ref(PyObject_CallNoArgs(torch.function_modes));
  const long modes = depth ? PyLong_AsLong(depth.get()) : 1;
  PyErr_Clear();
  return modes != 0;
}

}  // namespace

TorchFunctionOff** TorchFunctionOff::innermost() { return &t_innermost; }

TorchFunctionOff::TorchFunctionOff(const TorchApi* torch, TorchFunctionOff** of_thread)
    : torch_(torch), of_thread_(of_thread), outer_(std::exchange(*of_thread, this)) {
  if (torch == nullptr || torch->disable_function == nullptr) return;
  // Work within our own work is silent already, if that was.
  if (g_subclass_met || (outer_ == nullptr ? modes_on(*torch) : bool(outer_->context_))) enter();
}

void TorchFunctionOff::enter() {
  Ref context(PyObject_CallNoArgs(torch_->disable_function));
  Ref entered;
  if (context) entered = Ref(PyObject_CallMethod(context.get(), "__enter__", nullptr));
  if (entered)
    context_ = context;
  else
    PyErr_Clear();
}

void TorchFunctionOff::silence() {
  g_subclass_met = true;
  TorchFunctionOff* now = t_innermost;
  if (now == nullptr || now->context_ || now->torch_ == nullptr ||
      now->torch_->disable_function == nullptr)
    return;
  SavedError saved;
  now->enter();
}

TorchFunctionOff::~TorchFunctionOff() {
  *of_thread_ = outer_;
  if (!context_) return;
  SavedError saved;
  Ref left(PyObject_CallMethod(context_.get(), "__exit__", "OOO", Py_None, Py_None, Py_None));
  if (!left) PyErr_Clear();
}

TracerOff::TracerOff(const TorchApi* torch, void* const*& of_thread) : torch_(torch) {
  if (torch == nullptr || torch->set_tracing == nullptr || torch->tracing == nullptr) return;
  if (of_thread == nullptr && torch->native.tracing_state != nullptr)
    of_thread = torch->native.tracing_state();
  if (of_thread != nullptr && *of_thread == nullptr) return;
  state_ = Ref(PyObject_CallNoArgs(torch->tracing));
  if (state_.get() == Py_None) state_ = Ref();
  Ref set(state_ ? PyObject_CallFunctionObjArgs(torch->set_tracing, Py_None, nullptr) : nullptr);
  if (!set) {
    state_ = Ref();
    PyErr_Clear();
  }
}

TracerOff::~TracerOff() {
  if (!state_) return;
  SavedError saved;
  Ref set(PyObject_CallFunctionObjArgs(torch_->set_tracing, state_.get(), nullptr));
  if (!set) PyErr_Clear();
}

// nullptr is the default stream, and the processor.
void* current_stream(std::string_view type, int32_t dlpack_type, int index) {
  if (type == "cpu") return nullptr;
  void* handle = nullptr;
  if (g_api.dlpack != nullptr && g_api.dlpack->stream != nullptr && dlpack_type != 0) {
    if (g_api.dlpack->stream(dlpack_type, index, &handle) == 0) return handle;
    PyErr_Clear();
  }
  // torch.cuda.current_stream(0).cuda_stream
  const std::string name(type);
  PyObject* module = PyDict_GetItemString(PyImport_GetModuleDict(), ("torch." + name).c_str());
  Ref stream(module ? PyObject_CallMethod(module, "current_stream", "i", index) : nullptr);
  Ref number = stream ? attribute(stream.get(), (name + "_stream").c_str()) : Ref();
  if (number && PyLong_Check(number.get())) handle = PyLong_AsVoidPtr(number.get());
  PyErr_Clear();
  return handle;
}

Ref storage_object(PyObject* tensor) {
  const TorchApi* torch = torch_api();
  if (torch == nullptr || !torch->plain(tensor)) return {};
  bind_methods(tensor);
  if (!torch->untyped_storage) return {};
  Ref storage = torch->untyped_storage(tensor);
  if (!storage) PyErr_Clear();
  return storage;
}

namespace {

// False also where it is not known without asking Python. tensor: a plain one.
bool outside_autograd(const TorchApi& torch, PyObject* tensor) {
  bool outside = false;
  if (torch.layout.outside_autograd(tensor, outside)) return outside;
  const void* native = torch.native.tensor(tensor);
  return native != nullptr && torch.native.outside_autograd(native);
}

}  // namespace

Ref grad_fn_of(PyObject* tensor) {
  const TorchApi* torch = torch_api();
  if (torch == nullptr || !torch->plain(tensor) || !torch->grad_fn)
    return attribute(tensor, "grad_fn");
  if (outside_autograd(*torch, tensor)) return Ref::borrow(Py_None);
  Ref node = torch->grad_fn(tensor);
  if (!node) PyErr_Clear();
  return node;
}

bool wants_gradient(PyObject* tensor) {
  const TorchApi* torch = torch_api();
  if (torch == nullptr || !torch->plain(tensor) || !torch->requires_grad)
    return attribute(tensor, "requires_grad").get() == Py_True;
  if (outside_autograd(*torch, tensor)) return false;
  const Ref wants = torch->requires_grad(tensor);
  if (!wants) PyErr_Clear();
  return wants.get() == Py_True;
}

// Our questions in Python are not to be compiled. What stood there before is put back at the end.
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

// A number for each backward pass, -1 outside of any.
int64_t graph_task(const TorchApi& torch) {
  if (torch.native.current_graph_task != nullptr) return torch.native.current_graph_task();
  Ref id(torch.graph_task_id ? PyObject_CallNoArgs(torch.graph_task_id) : nullptr);
  const int64_t task = id ? PyLong_AsLongLong(id.get()) : -1;
  if (PyErr_Occurred()) PyErr_Clear();
  return task;
}

bool in_backward(const TorchApi& torch) { return graph_task(torch) != -1; }

}  // namespace opguard
