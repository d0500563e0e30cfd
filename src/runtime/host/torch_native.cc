// Symbols are looked up by their mangled names in the library that is loaded (RTLD_NOLOAD). A torch
// without them has these answers from Python, as ever.
//
//   object layout    [header][tensor]              at::Tensor right behind the header
//                    [header][flag][tensor]        MaybeOwned: the flag says whether it is borrowed
//
// Which it is, the first tensor tells whose word at that place is its _cdata. Then so many answers
// of both interfaces are compared (kCompared), before one of these is used alone.
//
// Counterexample: the tensor's autograd record. It may say less than grad_fn and requires_grad do,
// so only "outside of autograd" must agree, one way.
#include "runtime/host/torch_native.h"

#include <dlfcn.h>

#include <cstring>

#include "runtime/host/object.h"

namespace opguard {
namespace {

// The library as the program has loaded it; nothing is loaded by us.
void* torch_library() {
  for (const char* name : {"libtorch_cpu.so", "libtorch.so"})
    if (void* library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD)) return library;
  return nullptr;
}

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  void* at = dlsym(library, name);
  static_assert(sizeof at == sizeof function);
  std::memcpy(&function, &at, sizeof at);
  return at != nullptr;
}

}  // namespace

// Names of the Itanium C++ ABI, the same on every system that has libtorch_cpu.so.
void TorchNative::load() {
  void* library = torch_library();
  if (library == nullptr) return;
  find(library, "_ZN5torch8autograd25get_current_graph_task_idEv", current_graph_task);
  find(library, "_ZN2at4impl22PythonTorchFunctionTLS9stack_lenEv", function_modes);
  find(library, "_ZN5torch3jit6tracer15getTracingStateEv", tracing_state);
  if (find(library, "_ZN2at6native6is_negERKNS_6TensorE", is_neg_) &&
      find(library, "_ZN2at6native12is_inferenceERKNS_6TensorE", is_inference_) &&
      find(library, "_ZNK2at10TensorBase8_versionEv", version_) &&
      find(library, "_ZN5torch8autograd4impl17get_autograd_metaERKN2at10TensorBaseE",
           autograd_meta_))
    left_ = kCompared;
}

// Python is asked first, and lets other threads in meanwhile, which compare tensors of their own.
// From its last answer on nobody does: what this object holds is read and changed in one piece.
void TorchNative::check(PyObject* plain) {
  const auto impl = number(plain, "_cdata");
  const auto size = static_cast<Py_ssize_t>(
      number(reinterpret_cast<PyObject*>(Py_TYPE(plain)), "__basicsize__").value_or(0));
  const bool negated = says_true(plain, "is_neg"), inference = says_true(plain, "is_inference");
  const Ref node = attribute(plain, "grad_fn"), wanted = attribute(plain, "requires_grad");
  const bool outside = node.get() == Py_None && wanted.get() == Py_False;
  const auto counted =
      inference ? 0 : static_cast<uint32_t>(number(plain, "_version").value_or(UINT32_MAX));
  if (left_ <= 0) return;
  // The layout first, so that no function is given what is no tensor.
  const char* object = reinterpret_cast<const char*>(plain);
  uint64_t word = 0;
  if (tensor_at_ == 0) {
    // Behind the header: the tensor itself, or MaybeOwned's flag and then the tensor.
    const auto first = static_cast<Py_ssize_t>(sizeof(PyObject));
    for (Py_ssize_t at : {first, first + Py_ssize_t{8}}) {
      if (at + 8 > size) break;
      std::memcpy(&word, object + at, sizeof word);
      if (word != impl) continue;
      tensor_at_ = at;
      owned_at_ = at == first ? 0 : first;
      break;
    }
    if (tensor_at_ == 0) {
      // Borrowed: the next one may tell.
      --left_;
      return;
    }
  }
  if (owned_at_ != 0 && object[owned_at_] != 0) return;
  std::memcpy(&word, object + tensor_at_, sizeof word);
  bool same = word == impl;
  if (same) {
    const void* tensor = object + tensor_at_;
    uint32_t version_now = 0;
    same = is_neg_(tensor) == negated && is_inference_(tensor) == inference &&
           version(tensor, version_now) == !inference && version_now == counted &&
           (!outside_autograd(tensor) || outside);
  }
  if (!same) return distrust();
  trusted_ = --left_ == 0;
}

}  // namespace opguard
