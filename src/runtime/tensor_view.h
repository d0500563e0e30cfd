// runtime/tensor_view.h: a tensor's bytes and how they lie, read through Python attributes alone,
// so that one build serves every torch.
#pragma once

#include <string>

#include "runtime/fingerprint.h"
#include "runtime/py.h"
#include "runtime/torch_api.h"

namespace opguard {

struct TensorView {
  Meta meta;
  Elements elements;     // strides in bytes
  uint32_t version = 0;  // 0 where there is no counter (inference tensors, numpy)
  bool readable = false;
  Ref keep;  // what owns the bytes if not the object itself (a resolved conjugate, a local shard)
  // Distance from the first element to past the last one in memory.
  uint64_t span_bytes() const;
};

// Never fails: what cannot be read is told by `readable`, with whatever of the shape is known. Call
// it with TorchFunctionOff in force.
TensorView view_tensor(const TorchApi& torch, PyObject* tensor);

// An array of numbers through __array_interface__; false for other element types.
bool view_numpy(PyObject* array, TensorView& view);

// torch's version counter, 0 if it has none.
uint32_t tensor_version(PyObject* tensor);

}  // namespace opguard
