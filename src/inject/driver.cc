// The driver is bound at the first call after the process has loaded it. Until then each call looks
// again, and loads nothing (RTLD_NOLOAD).
//
// What wait_for_devices() waits for:
//
//   device 0, its primary context active    made current, synchronised, left as it was
//   device 1, its primary context not       nothing: to retain the context would make it
//
// Counterexample: a context that the program made itself. Only primary ones, which CUDA's runtime
// works in, are waited for.
#include "inject/driver.h"

#include <dlfcn.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "inject/symbols.h"

namespace opguard {
namespace {

Driver g_driver;

// Null where this driver has no such function.
template <typename F>
void bind(void* handle, const char* name, F& function) {
  function = reinterpret_cast<F>(symbol_of(handle, name));
}

// A device that fails at any step is passed over: this is the program's end.
void wait_for_all(const Driver& d) {
  if (!d.device_count || !d.device || !d.primary_state || !d.retain || !d.release || !d.push ||
      !d.pop || !d.synchronize)
    return;
  int count = 0;
  if (d.device_count(&count) != 0) return;
  for (int i = 0; i < count; ++i) {
    int device = 0, active = 0;
    unsigned flags = 0;
    if (d.device(&device, i) != 0 || d.primary_state(device, &flags, &active) != 0 || !active)
      continue;
    void* context = nullptr;
    if (d.retain(&context, device) != 0) continue;
    if (d.push(context) == 0) {
      d.synchronize();
      d.pop(&context);
    }
    d.release(device);
  }
}

}  // namespace

const Driver* driver() {
  static std::mutex mutex;
  static bool bound = false;
  std::lock_guard<std::mutex> lock(mutex);
  if (bound) return &g_driver;
  void* handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (!handle) return nullptr;
  bind(handle, "cuFuncGetName", g_driver.function_name);
  bind(handle, "cuKernelGetName", g_driver.kernel_name);
  bind(handle, "cuCtxGetDevice", g_driver.current_device);
  bind(handle, "cuStreamIsCapturing", g_driver.is_capturing);
  bind(handle, "cuDeviceGetCount", g_driver.device_count);
  bind(handle, "cuDeviceGet", g_driver.device);
  bind(handle, "cuDevicePrimaryCtxGetState", g_driver.primary_state);
  bind(handle, "cuDevicePrimaryCtxRetain", g_driver.retain);
  bind(handle, "cuDevicePrimaryCtxRelease_v2", g_driver.release);
  bind(handle, "cuCtxPushCurrent_v2", g_driver.push);
  bind(handle, "cuCtxPopCurrent_v2", g_driver.pop);
  bind(handle, "cuCtxSynchronize", g_driver.synchronize);
  bound = true;
  return &g_driver;
}

void wait_for_devices(std::chrono::seconds most) {
  const Driver* d = driver();
  if (!d) return;
  // In a thread that may be left behind: the driver has no wait with a limit.
  struct Waiting {
    std::mutex mutex;
    std::condition_variable done;
    bool ended = false;
  };
  auto waiting = std::make_shared<Waiting>();
  std::thread([waiting, d] {
    wait_for_all(*d);
    std::lock_guard<std::mutex> lock(waiting->mutex);
    waiting->ended = true;
    waiting->done.notify_all();
  }).detach();
  std::unique_lock<std::mutex> lock(waiting->mutex);
  waiting->done.wait_for(lock, most, [&] { return waiting->ended; });
}

}  // namespace opguard
