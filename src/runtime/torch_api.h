// runtime/torch_api.h: what the runtime needs of torch, looked up once. Never imports torch.
#pragma once

#include "record/record.h"
#include "runtime/py.h"

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

  bool is_tensor(PyObject* object) const;
  bool is_module(PyObject* object) const;
  PyObject* optimizer_type() const;  // nullptr until torch.optim is imported
};

// nullptr until `import torch` has finished.
const TorchApi* torch_api();

// While it lives __torch_function__ of subclasses and modes stays silent: what we read of a tensor
// must not run the program's code.
class TorchFunctionOff {
 public:
  explicit TorchFunctionOff(const TorchApi* torch);
  TorchFunctionOff(const TorchFunctionOff&) = delete;
  TorchFunctionOff& operator=(const TorchFunctionOff&) = delete;
  ~TorchFunctionOff();

 private:
  Ref context_;
};

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

}  // namespace opguard
