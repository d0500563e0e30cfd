// runtime/host/tensor_layout.h: a plain tensor of the processor's memory, read from torch's own
// struct: shape, strides, type, address and version counter without a call.
//
// Where the fields lie is no promise of torch's. It is found in this process, by tensors whose
// answers are known (python/opguard/record/tensor_layout.py). Every field must lie in exactly one
// place. Then the first tensors of the program are compared with what torch's Python interface says
// of them. One answer that differs turns it off for good, and everything is asked as without it.
//
// It speaks only of tensors whose struct is the common class, told by its virtual table. Their
// dispatch keys must be those of an ordinary tensor. Anything wrapped, lazy, negated, sparse,
// named, fake, quantized or on a device has other keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/host/py.h"

namespace opguard {

// An element type that can be read; for ever.
struct TensorType {
  std::string_view dtype;  // torch's name without "torch."
  uint16_t code;           // DLPack's: its type's number << 8 | bits
  uint8_t size;            // bytes of an element
};

// Pointers belong to the tensor, and are good until the program goes on.
struct TensorFields {
  const int64_t* sizes = nullptr;
  const int64_t* strides = nullptr;  // in elements
  size_t dims = 0;
  const TensorType* type = nullptr;
  const char* data = nullptr;  // of its first element; null where it has no elements
  uint32_t version = 0;
  bool counted = false;  // false: an inference tensor, which counts no versions
  bool outside_autograd =
      true;  // neither made by an autograd node nor a leaf that wants a gradient
  const void* storage = nullptr;  // torch's struct of it, only compared
};

class TensorLayout {
 public:
  // Found, and enough tensors agreed.
  bool trusted() const { return trusted_; }

  // plain: exactly a torch.Tensor or Parameter. False: not trusted, or not a tensor that this
  // speaks of. Calls nothing, raises nothing.
  bool read(PyObject* plain, TensorFields& out) const { return trusted_ && look(plain, out); }
  // The same of its version counter alone, and of `outside_autograd`.
  bool version(PyObject* plain, uint32_t& out) const;
  bool outside_autograd(PyObject* plain, bool& out) const;
  // And of the structs of its storage and of its version counter, which are only compared; nullptr:
  // not known here, or it has none.
  const void* storage(PyObject* plain) const;
  const void* counter(PyObject* plain) const;

  // probes: a dict of what tensor_layout.py made. False, without an error set: something was found
  // nowhere or in two places, or differs from what Python says.
  bool find(PyObject* probes);
  // One more plain tensor is compared with, until there were enough.
  void meet(PyObject* plain) {
    if (left_ > 0) check(plain);
  }
  // From now on everything is asked otherwise.
  void distrust() { *this = TensorLayout(); }
  // Where a field was found, in bytes, for tests and reports; -1 for one that was not.
  int64_t offset(std::string_view field) const;

 private:
  const char* impl_of(PyObject* plain) const;
  bool ordinary(const char* impl) const;
  bool look(PyObject* plain, TensorFields& out) const;
  bool agrees(PyObject* plain) const;
  void check(PyObject* plain);
  template <typename Fits>
  int field(int step, Fits fits) const;
  bool find_object(PyObject* tensor);
  bool find_sizes(PyObject* probes);
  bool find_types(PyObject* probes);
  bool find_storage(PyObject* probes);
  bool find_version(PyObject* probes);
  bool find_autograd(PyObject* probes);
  bool find_keys(PyObject* probes);
  bool find_checks(PyObject* probes);

  static constexpr int kCompared = 64;  // tensors of the program
  static constexpr size_t kTypes = 64;  // torch numbers its element types from 0
  static constexpr size_t kKeys = 4, kChecks = 4;

  bool trusted_ = false;
  int left_ = 0;               // tensors of the program still to be compared
  Py_ssize_t object_at_ = -1;  // of the pointer to the struct, in the Python object
  Py_ssize_t owned_at_ = -1;   // of MaybeOwned's flag there (torch before 2.10); -1: there is none
  // In the struct. After `sizes` follow room for five sizes and then five strides; of more
  // dimensions, a pointer to all sizes and then all strides.
  int sizes_ = -1, offset_ = -1, numel_ = -1, type_ = -1, storage_ = -1, autograd_ = -1,
      version_ = -1, keys_ = -1;
  int data_ = -1;   // in the storage's struct
  int count_ = -1;  // in the version counter's
  int checks_[kChecks] = {-1, -1, -1,
                          -1};  // in the storage's: bytes that are 0 where reading is plain
  uint64_t class_ = 0;          // address of the virtual table
  uint64_t known_keys_[kKeys] = {};
  const TensorType* types_[kTypes] = {};
};

}  // namespace opguard
