// runtime/host/tensor_view.h: a tensor's bytes and how they lie. One build serves every torch: it
// reads DLPack's table where torch has it, and Python attributes elsewhere.
//
//   x.t() of float32 [4, 8]         shape [8, 4], strides 4 and 32 bytes, the address of x
//   a[::-1] of numpy                a negative stride: `elements.data` is the highest address
//   FakeTensor, sparse, meta        not readable: dtype and shape as far as they are known
//
// Counterexample: asking a tensor may run the program's code (`__torch_function__`), or add a guard
// to a graph that is being compiled. So it is called with TorchFunctionOff in force, and a symbolic
// size is left alone.
//
// The cost: with DLPack's table or torch's own struct (torch_native.h) no attribute is asked for.
#pragma once

#include <string>

#include "runtime/fingerprint/fingerprint.h"
#include "runtime/host/devices.h"
#include "runtime/host/py.h"
#include "runtime/host/torch_api.h"

namespace opguard {

struct TensorView {
  Meta meta;
  Elements elements;        // strides in bytes
  uint32_t version = 0;     // 0 where there is no counter (inference tensors, numpy)
  bool readable = false;    // here: `elements` are in the processor's memory
  bool counted = false;     // it has a version counter, and no bytes but its own
  uint16_t dtype_code = 0;  // stands for meta.dtype where it is not 0
  // Who reads it in its own memory; then `elements` are there. "cpu" may have one too.
  const Device* device = nullptr;
  int32_t device_index = 0, dlpack_type = 0;  // "cuda:1" is 1; DLPack's number of "cuda", 0 unknown
  PyObject* object = nullptr;                 // what was viewed; borrowed
  Ref keep;  // what owns the bytes if not the object itself (a resolved conjugate, a local shard)

  bool has_value() const { return readable || device != nullptr; }
  void clear();
  uint64_t content_bytes() const;  // an expanded tensor has more of it than of memory
  // Where in memory its elements lie: the lowest address, and the distance from there to past the
  // highest. A numpy array may run backwards (`a[::-1]`): then `elements.data` is the highest.
  uint64_t first_byte() const;
  uint64_t span_bytes() const;
  // Shape and span then tell how it lies, but for chance.
  bool in_memory_order() const;
};

// The same into a view that was used before, so that nothing is allocated. Never fails: what cannot
// be read is told by `readable`, with whatever of the shape is known. Call it with TorchFunctionOff
// in force.
void view_tensor(const TorchApi& torch, PyObject* tensor, TensorView& view);
TensorView view_tensor(const TorchApi& torch, PyObject* tensor);

// An array of numbers through __array_interface__; false for other element types.
bool view_numpy(PyObject* array, TensorView& view);

// torch's version counter, 0 if it has none.
uint32_t tensor_version(PyObject* tensor);

}  // namespace opguard
