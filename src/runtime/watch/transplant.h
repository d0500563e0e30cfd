// runtime/watch/transplant.h: a value of the program replaced by one from a file.
//
//   y = og("softmax:q7k2", f)(s)     y's bytes become the file's; autograd saved y: it has them too
//
// No operator of the program's sees it and no version is counted, so nothing else in the run
// changes. That makes a re-run a proof. All or nothing: a value of another dtype or shape is
// refused.
//
// Counterexample: an expanded view. Its elements share memory, so no bytes could make them the
// file's.
#pragma once

#include <string>

#include "runtime/host/tensor_view.h"
#include "tensor/safetensors.h"
#include "tensor/selection.h"

namespace opguard {

// A value read whole when the program starts: a file that changes later cannot hurt it.
struct TransplantValue {
  const Dtype* dtype = nullptr;
  std::vector<int64_t> shape;
  std::vector<unsigned char> bytes;
};

// "" or why it cannot be had.
std::string load_value(const Transplant& transplant, TransplantValue& value);

// Puts the value's bytes where the tensor's are. No operator of the program's sees it and no
// version is counted. What autograd saved of the same memory is the new value too, which is the
// point. All or nothing. On a device it is a copy on the stream that the thread works on, and
// waited for. Gives "" or why not: another dtype or shape, memory that cannot or must not be
// written. Under OwnWork. same: whether the tensor held that value already. Then nothing is
// written.
std::string replace_value(const TorchApi* torch, PyObject* object, const TensorView& view,
                          const TransplantValue& value, bool& same);

// Whether the tensor holds that very value, so that there is nothing to replace. Under OwnWork.
bool holds_value(const TorchApi& torch, PyObject* object, const TransplantValue& value);

}  // namespace opguard
