// The driver's library is opened at run time, so that one build runs where there is none too.
//
//   no libcuda.so.1             ENOENT, "no CUDA driver: ..."
//   a driver for CUDA 11.8      ENOSYS, "the CUDA driver is for CUDA 11.8, 12.0 or later is needed"
//   a driver, but no device     EIO, "cuInit: CUDA_ERROR_NO_DEVICE"
#include "device/cuda_driver.h"

#include <dlfcn.h>

#include <cerrno>

namespace opguard {

int CudaDriver::load(const char* library, std::string& error) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    error = std::string("no CUDA driver: ") + (why != nullptr ? why : library);
    return ENOENT;
  }
  // The version first: what is missing is then told by it, not by a symbol's name.
  bool found = true;
  const char* missing = "";
  auto find = [&](auto& function, const char* name) {
    void* symbol = dlsym(handle, name);
    if (symbol == nullptr && found) {
      found = false;
      missing = name;
    }
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
  };
#define OPGUARD_FIND(name) find(name, #name)
  OPGUARD_FIND(cuInit);
  OPGUARD_FIND(cuDriverGetVersion);
  OPGUARD_FIND(cuGetErrorName);
  OPGUARD_FIND(cuDeviceGet);
  OPGUARD_FIND(cuDeviceGetAttribute);
  OPGUARD_FIND(cuDevicePrimaryCtxRetain);
  OPGUARD_FIND(cuCtxGetCurrent);
  OPGUARD_FIND(cuCtxPushCurrent_v2);
  OPGUARD_FIND(cuCtxPopCurrent_v2);
  OPGUARD_FIND(cuModuleLoadDataEx);
  OPGUARD_FIND(cuModuleGetFunction);
  OPGUARD_FIND(cuModuleGetGlobal_v2);
  OPGUARD_FIND(cuCtxGetId);
  OPGUARD_FIND(cuMemHostRegister_v2);
  OPGUARD_FIND(cuMemHostAlloc);
  OPGUARD_FIND(cuMemHostGetDevicePointer_v2);
  OPGUARD_FIND(cuThreadExchangeStreamCaptureMode);
  OPGUARD_FIND(cuStreamGetCaptureInfo_v2);
  OPGUARD_FIND(cuStreamGetId);
  OPGUARD_FIND(cuLaunchKernel);
#undef OPGUARD_FIND
  cuFuncLoad = reinterpret_cast<decltype(cuFuncLoad)>(dlsym(handle, "cuFuncLoad"));
  int version = 0;
  if (cuDriverGetVersion != nullptr) cuDriverGetVersion(&version);
  if (!found || version < 12000) {
    error = "the CUDA driver is for CUDA " + std::to_string(version / 1000) + "." +
            std::to_string(version % 1000 / 10) + ", 12.0 or later is needed";
    if (version >= 12000) error = std::string("the CUDA driver has no function ") + missing;
    return ENOSYS;
  }
  if (const int failed = cuInit(0); failed != 0) {
    error = "cuInit: " + name_of(failed);
    return EIO;
  }
  return 0;
}

std::string CudaDriver::name_of(int error) const {
  const char* name = nullptr;
  if (cuGetErrorName != nullptr && cuGetErrorName(error, &name) == 0 && name != nullptr)
    return name;
  return "CUDA error " + std::to_string(error);
}

}  // namespace opguard
