// The CUDA table as a library of its own, with what the checks compare it to.
#include <cstring>
#include <vector>

#include "device/cuda.h"
#include "device/cuda_options.h"
#include "runtime/fingerprint/fingerprint.h"
#include "runtime/fingerprint/xor.h"

extern "C" {

const opguard_device_plugin* opguard_device_plugin_v1() { return opguard::cuda_device_plugin(); }

void opguard_test_options(const char* library, uint64_t ring_entries, uint32_t blocks) {
  opguard::CudaOptions options;
  if (library != nullptr) options.library = library;
  if (ring_entries != 0) options.ring_entries = ring_entries;
  if (blocks != 0) options.blocks_per_multiprocessor = blocks;
  opguard::set_cuda_options(options);
}

// The processor's own of a tensor in its memory.
void opguard_test_digest(const opguard_tensor* t, opguard_value* value) {
  const opguard::Elements e{t->data,
                            t->element_bytes,
                            {t->shape, t->shape + t->dims},
                            {t->strides, t->strides + t->dims}};
  // By opguard_element_type, as far as tests/gpu/plugin.py goes.
  const char* dtypes[] = {"",      "bool", "uint8", "int8",    "",         "int16",   "",
                          "int32", "",     "int64", "float16", "bfloat16", "float32", "float64"};
  const opguard::Digest d = opguard::digest(e, dtypes[t->element_type]);
  const bool known = t->element_type != OPGUARD_ELEMENT_NONE;
  *value = {t->ticket,
            d.value.h,
            d.value.m,
            d.flat,
            d.pattern.value_or(0),
            0,
            0,
            (d.pattern ? OPGUARD_VALUE_MASK : 0u) | (known ? OPGUARD_VALUE_DIGEST : 0u),
            known ? d.elements.value_or(0) : 0};
}

uint64_t opguard_test_xor64(const opguard_tensor* t) {
  return opguard::xor64({t->data,
                         t->element_bytes,
                         {t->shape, t->shape + t->dims},
                         {t->strides, t->strides + t->dims}});
}

uint32_t opguard_test_xor(int device, void* stream, const opguard_tensor* tensors, uint32_t count) {
  return opguard::cuda_xor(device, stream, tensors, count);
}

// Values so far; the caller's buffer holds `room`.
uint64_t opguard_test_drain(opguard_value* to, uint64_t room, uint64_t wait_ns) {
  struct Kept {
    opguard_value* to;
    uint64_t room, count;
  } kept{to, room, 0};
  opguard::cuda_device_plugin()->drain(
      [](void* context, const opguard_value* value) {
        auto* k = static_cast<Kept*>(context);
        if (k->count < k->room) k->to[k->count++] = *value;
      },
      &kept, wait_ns);
  return kept.count;
}

uint32_t opguard_test_fingerprint(int device, void* stream, const opguard_tensor* tensors,
                                  uint32_t count) {
  return opguard::cuda_device_plugin()->fingerprint(device, stream, tensors, count);
}

uint64_t opguard_test_lost() { return opguard::cuda_device_plugin()->lost(); }

void opguard_test_problem(char* to, uint64_t room) {
  std::strncpy(to, opguard::cuda_problem().c_str(), room - 1);
  to[room - 1] = 0;
}

}  // extern "C"
