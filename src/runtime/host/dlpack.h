// runtime/host/dlpack.h: the part of DLPack 1.x's C exchange table that reads a tensor where it
// lies. Pointer, shape, strides and type come without an attribute of Python's.
#pragma once

#include <cstdint>

namespace opguard {

struct DlpackTensor {
  void* data;
  int32_t device_type, device_id;  // device_type 1: the processor's own memory
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t* shape;    // belong to the tensor
  int64_t* strides;  // in elements
  uint64_t byte_offset;
};

// What the capsule "dlpack_exchange_api" points to.
struct DlpackExchange {
  uint32_t major, minor;
  const void* previous;
  void *allocate, *managed_of, *object_of;
  int (*tensor_of)(void* object, DlpackTensor* out);                  // 0, or -1 with an error set
  int (*stream)(int32_t device_type, int32_t device_id, void** out);  // the same
};

}  // namespace opguard
