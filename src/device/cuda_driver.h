// device/cuda_driver.h: the few functions of CUDA's driver library that opguard calls, found at run
// time. None of them waits for a device or orders its work, but for what makes a device ready.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace opguard {

// Types and numbers as cuda.h has them (12.0 and later; the driver's ABI).
using CudaContext = void*;
using CudaModule = void*;
using CudaFunction = void*;
using CudaStream = void*;
using CudaAddress = uint64_t;

struct CudaDriver {
  int (*cuInit)(unsigned flags);
  int (*cuDriverGetVersion)(int* version);
  int (*cuGetErrorName)(int error, const char** name);
  int (*cuDeviceGet)(int* device, int ordinal);
  int (*cuDeviceGetAttribute)(int* value, int attribute, int device);
  int (*cuDevicePrimaryCtxRetain)(CudaContext* context, int device);
  int (*cuCtxGetCurrent)(CudaContext* context);
  int (*cuCtxPushCurrent_v2)(CudaContext context);
  int (*cuCtxPopCurrent_v2)(CudaContext* context);
  int (*cuModuleLoadDataEx)(CudaModule* module, const void* image, unsigned options, int* option,
                            void** value);
  int (*cuModuleGetFunction)(CudaFunction* function, CudaModule module, const char* name);
  int (*cuModuleGetGlobal_v2)(CudaAddress* address, size_t* bytes, CudaModule module,
                              const char* name);
  int (*cuCtxGetId)(CudaContext context, unsigned long long* id);
  int (*cuMemHostRegister_v2)(void* memory, size_t bytes, unsigned flags);
  int (*cuMemHostAlloc)(void** memory, size_t bytes, unsigned flags);
  int (*cuMemHostGetDevicePointer_v2)(CudaAddress* address, void* memory, unsigned flags);
  int (*cuThreadExchangeStreamCaptureMode)(int* mode);
  int (*cuStreamGetCaptureInfo_v2)(CudaStream stream, int* status, uint64_t* id, void** graph,
                                   const void** dependencies, size_t* count);
  int (*cuStreamGetId)(CudaStream stream, uint64_t* id);
  int (*cuLaunchKernel)(CudaFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CudaStream stream, void** parameters, void** extra);
  int (*cuFuncLoad)(CudaFunction function);  // of 12.4; may be null

  // 0, or an errno value with a sentence in `error`. The library stays loaded.
  int load(const char* library, std::string& error);
  // "CUDA_ERROR_INVALID_VALUE", or the number.
  std::string name_of(int error) const;
};

constexpr int kCudaAttributeMultiprocessors = 16;
// Of allocated and of registered memory alike.
constexpr unsigned kCudaHostPortable = 1, kCudaHostDeviceMap = 2;
constexpr int kCudaCaptureActive = 1;
constexpr int kCudaCaptureModeRelaxed = 2;
constexpr int kCudaJitErrorLog = 5, kCudaJitErrorLogBytes = 6;

// The context is the calling thread's while this lives. Mostly it is already.
class CurrentContext {
 public:
  CurrentContext(const CudaDriver& driver, CudaContext context) : driver_(driver) {
    CudaContext now = nullptr;
    if (driver_.cuCtxGetCurrent(&now) == 0 && now == context) return;
    good_ = pushed_ = driver_.cuCtxPushCurrent_v2(context) == 0;
  }
  ~CurrentContext() {
    CudaContext popped;
    if (pushed_) driver_.cuCtxPopCurrent_v2(&popped);
  }
  CurrentContext(const CurrentContext&) = delete;
  bool good() const { return good_; }

 private:
  const CudaDriver& driver_;
  bool good_ = true, pushed_ = false;
};

// Loading and allocating are allowed while some stream is captured: they are no part of the graph.
class Uncaptured {
 public:
  explicit Uncaptured(const CudaDriver& driver) : driver_(driver) {
    driver_.cuThreadExchangeStreamCaptureMode(&mode_);
  }
  ~Uncaptured() { driver_.cuThreadExchangeStreamCaptureMode(&mode_); }
  Uncaptured(const Uncaptured&) = delete;

 private:
  const CudaDriver& driver_;
  int mode_ = kCudaCaptureModeRelaxed;
};

}  // namespace opguard
