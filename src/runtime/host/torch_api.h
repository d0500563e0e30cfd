// runtime/host/torch_api.h: what the runtime needs of torch, looked up once. Never imports torch.
#pragma once

#include "record/record.h"
#include "runtime/host/dlpack.h"
#include "runtime/host/fast_call.h"
#include "runtime/host/py.h"
#include "runtime/host/tensor_layout.h"
#include "runtime/host/torch_native.h"

namespace opguard {

// Borrowed for the life of the process; null where this torch has no such thing.
struct TorchApi {
  PyObject* tensor_type = nullptr;
  PyObject* parameter_type = nullptr;
  PyObject* module_type = nullptr;
  PyObject* generator_type = nullptr;
  PyObject* plain_types[4] =
      {};  // dtype, device, layout, memory_format: their str() is their value
  PyObject* strided = nullptr;
  PyObject* default_dispatch = nullptr;  // Tensor.__torch_dispatch__
  PyObject* disable_function = nullptr;  // torch._C.DisableTorchFunction
  PyObject* graph_task_id = nullptr;
  PyObject* grad_enabled = nullptr;
  PyObject* function_modes = nullptr;      // torch._C._len_torch_function_stack
  PyObject* set_tracing = nullptr;         // torch._C._set_tracing_state
  PyObject* tracing = nullptr;             // torch._C._get_tracing_state
  const DlpackExchange* dlpack = nullptr;  // torch 2.10 and later
  // Of torch.Tensor: for what is plain only.
  Getter version, grad_fn, requires_grad;
  Method is_neg, untyped_storage;  // once bind_methods() was called
  TorchNative native;
  TensorLayout layout;

  // Exactly a torch.Tensor or Parameter: nothing of it runs the program's code.
  bool plain(PyObject* object) const {
    auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
    return type == tensor_type || type == parameter_type;
  }
  // Of any other tensor the first call silences __torch_function__ for the rest of our work.
  bool is_tensor(PyObject* object) const;
  bool is_module(PyObject* object) const;
  PyObject* optimizer_type() const;  // nullptr until torch.optim is imported
};

inline const TorchApi* g_torch_api = nullptr;
const TorchApi* find_torch_api();
// nullptr until `import torch` has finished.
inline const TorchApi* torch_api() {
  return g_torch_api != nullptr ? g_torch_api : find_torch_api();
}

// While it lives __torch_function__ of subclasses and modes stays silent: what we read of a tensor
// must not run the program's code. Where no mode is on and no subclass was met, nothing need be
// done; the first subclass met makes up for it.
class TorchFunctionOff {
 public:
  // of_thread: innermost() of this thread.
  TorchFunctionOff(const TorchApi* torch, TorchFunctionOff** of_thread);
  TorchFunctionOff(const TorchFunctionOff&) = delete;
  TorchFunctionOff& operator=(const TorchFunctionOff&) = delete;
  ~TorchFunctionOff();

  // A subclass was met.
  static void silence();
  // Where this thread keeps its innermost one: the same place as long as the thread lives.
  static TorchFunctionOff** innermost();

 private:
  void enter();

  const TorchApi* torch_;
  TorchFunctionOff** const of_thread_;
  TorchFunctionOff* outer_;  // of this thread
  Ref context_;
};

// While it lives torch.jit.trace sees nothing of this thread. What is asked of a tensor would be
// nodes of the program's graph, and number the others.
class TracerOff {
 public:
  // of_thread: where torch keeps what this thread traces, once it was asked for.
  TracerOff(const TorchApi* torch, void* const*& of_thread);
  TracerOff(const TracerOff&) = delete;
  TracerOff& operator=(const TracerOff&) = delete;
  ~TracerOff();

 private:
  const TorchApi* torch_;
  Ref state_;  // none where nothing is traced
};

// The stream that torch has chosen for a device in this thread, as device/plugin.h wants it. `type`
// is torch's name, `dlpack_type` DLPack's number of it, 0 where that is not known. Null: the
// default one ("cpu" has no other), or torch has no word for it.
void* current_stream(std::string_view type, int32_t dlpack_type, int index);

// True: tensors are asked by TorchNative. allow false: never again, in this process; nor are they
// read by TensorLayout.
bool torch_native(bool allow);

// TorchApi::layout, also before `import torch` has finished.
TensorLayout& tensor_layout();

// Finds the methods by the first plain tensor there is, and compares what is native by more.
void bind_methods(PyObject* tensor);

// The storage of a plain tensor as torch's Python object; none where it has none.
Ref storage_object(PyObject* tensor);

// The autograd node that made it, None for a leaf; none with no error set for what has no answer.
Ref grad_fn_of(PyObject* tensor);

// Its requires_grad; of a plain tensor outside autograd without asking Python.
bool wants_gradient(PyObject* tensor);

// Around calls of our own Python code: torch.compile would trace its frames as the program's.
class CompilerOff {
 public:
  CompilerOff();
  CompilerOff(const CompilerOff&) = delete;
  CompilerOff& operator=(const CompilerOff&) = delete;
  ~CompilerOff();

 private:
  Ref set_;    // torch._C._dynamo.eval_frame.set_eval_frame; none where nothing compiles
  Ref prior_;  // its callback before
};

bool grad_enabled(const TorchApi& torch);
bool in_backward(const TorchApi& torch);

// The backward pass that this thread works for, torch's number of it; -1: none.
int64_t graph_task(const TorchApi& torch);

}  // namespace opguard
