// runtime/host/torch_native.h: what torch's own C++ functions answer about a tensor, where the
// libraries that the program has loaded export them. No Python object is made, no argument parsed.
//
// They are found by name in libtorch_cpu and never trusted unseen. Where at::Tensor lies in its
// Python object is found by comparing with Tensor._cdata. The answers about the first tensors are
// compared with those of torch's Python interface. One that differs turns all of it off for good.
#pragma once

#include <cstdint>

#include "runtime/host/py.h"

namespace opguard {

// Every function takes at::Tensor const*, as tensor() gives it, and raises nothing.
class TorchNative {
 public:
  // at::Tensor within a plain tensor; nullptr: to be asked through Python.
  const void* tensor(PyObject* plain) const {
    if (!trusted_) return nullptr;
    const char* object = reinterpret_cast<const char*>(plain);
    if (owned_at_ != 0 && object[owned_at_] != 0) return nullptr;  // MaybeOwned, borrowed
    return object + tensor_at_;
  }
  bool is_negated(const void* tensor) const { return is_neg_(tensor); }
  // False: an inference tensor, which counts no versions.
  bool version(const void* tensor, uint32_t& out) const {
    if (is_inference_(tensor)) return false;
    out = static_cast<uint32_t>(version_(tensor));
    return true;
  }
  // Neither made by an autograd node nor a leaf that wants a gradient.
  bool outside_autograd(const void* tensor) const { return autograd_meta_(tensor) == nullptr; }

  // These have no tensor to be compared by: they are what torch._C's functions of these names
  // return. Null where torch has none.
  int (*current_graph_task)() = nullptr;
  int64_t (*function_modes)() = nullptr;
  // The thread's std::shared_ptr of what torch.jit.trace works at: its first word is the pointer.
  void* const* (*tracing_state)() = nullptr;

  bool trusted() const { return trusted_; }
  // From now on everything is asked through Python.
  void distrust() { *this = TorchNative(); }

  // Finds the functions.
  void load();
  // One more plain tensor is compared with, until there were enough.
  void meet(PyObject* plain) {
    if (left_ > 0) check(plain);
  }

 private:
  static constexpr int kCompared = 64;

  void check(PyObject* plain);

  bool (*is_neg_)(const void*) = nullptr;
  bool (*is_inference_)(const void*) = nullptr;
  int64_t (*version_)(const void*) = nullptr;
  void* (*autograd_meta_)(const void*) = nullptr;
  bool trusted_ = false;
  int left_ = 0;              // tensors still to be compared
  Py_ssize_t tensor_at_ = 0;  // bytes from the object's beginning
  Py_ssize_t owned_at_ = 0;   // of MaybeOwned's flag (torch before 2.10); 0: there is none
};

}  // namespace opguard
