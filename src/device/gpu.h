// device/gpu.h: what lets the device and the host compile the same source.
//
//   OPGUARD_GPU         a function of both, inlined on the device
//   OPGUARD_GPU_CALL    a function of both, called on the device: its loops have all registers
//   OPGUARD_ON_GPU      defined where instructions of the device may be written
#pragma once

#include <stddef.h>
#include <stdint.h>

// nvcc knows __device__ itself; clang is run without CUDA's headers.
#if defined(__CUDACC__)
#define OPGUARD_GPU __device__ __forceinline__
#define OPGUARD_GPU_CALL __device__ __noinline__
#elif defined(__CUDA__)
#define OPGUARD_GPU __attribute__((device)) inline __attribute__((always_inline))
#define OPGUARD_GPU_CALL __attribute__((device)) __attribute__((noinline))
#else
#define OPGUARD_GPU inline
#define OPGUARD_GPU_CALL inline
#endif
#if defined(__CUDA_ARCH__)
#define OPGUARD_ON_GPU 1
#define OPGUARD_UNROLL _Pragma("unroll")
#define OPGUARD_NO_UNROLL _Pragma("unroll 1")
#else
#define OPGUARD_UNROLL
#define OPGUARD_NO_UNROLL
#endif
