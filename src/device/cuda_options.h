// device/cuda_options.h: what tests and measurements may set before the CUDA table is opened.
#pragma once

#include <cstdint>
#include <string>

#include "device/plugin.h"

namespace opguard {

struct CudaOptions {
  std::string library = "libcuda.so.1";
  uint64_t ring_entries = 1 << 16;  // of a device, a power of two; 80 bytes each
  uint32_t blocks_per_multiprocessor = 2;
};

void set_cuda_options(const CudaOptions& options);

// xor64 (h) and xor32 (flat) of the tensors in place of og1; otherwise as fingerprint().
uint32_t cuda_xor(int device, void* stream, const opguard_tensor* tensors, uint32_t count);

// Why a device could not be made ready or a launch failed, the last time; "" for never.
std::string cuda_problem();

}  // namespace opguard
