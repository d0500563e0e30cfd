// device/cuda_kernels.h: the compiled kernels in this file.
#pragma once

namespace opguard {

// PTX, ended by a zero; null where the build had no clang to make it.
const char* cuda_kernels_small();
const char* cuda_kernels_large();

}  // namespace opguard
