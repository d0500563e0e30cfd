// device/cuda_kernels.h: the compiled kernels in this file.
#pragma once

#include <cstddef>

namespace opguard {

// A launch of few tensors (SmallLaunch) or more, all of them plain (JobFlag kPlain) or not.
enum CudaKernel : unsigned { kSmall, kLarge, kPlainSmall, kPlainLarge };
constexpr size_t kCudaKernels = 4;

const char* name_of(CudaKernel kernel);

// PTX, ended by a zero; null where the build had no clang to make it.
const char* ptx_of(CudaKernel kernel);

}  // namespace opguard
