// Our functions in place of the CUDA runtime's and cuBLASLt's that launch, for programs that call
// them through a shared library. They are bound by their names where this library is preloaded.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

#include "device/plugin.h"
#include "inject/launch_note.h"
#include "inject/launches.h"
#include "inject/symbols.h"

namespace opguard {
namespace {

constexpr int kUnknownError = 999;  // cudaErrorUnknown: the function is nowhere to be found

struct Dim3 {
  unsigned x, y, z;
};

// The beginning of cudaLaunchConfig_t.
struct RuntimeLaunchConfig {
  Dim3 grid, block;
  size_t shared_bytes;
  void* stream;
};

// The function that ours stands before.
template <typename F>
class Next {
 public:
  explicit Next(const char* name) : name_(name) {}
  // Null where the program has no other function of that name than ours.
  F* find(F* ours, const void* caller) {
    void* found = found_.load(std::memory_order_acquire);
    if (!found) {
      found = next_symbol(name_, caller);
      if (found == reinterpret_cast<void*>(ours)) found = nullptr;
      found_.store(found, std::memory_order_release);
    }
    return reinterpret_cast<F*>(found);
  }

 private:
  const char* name_;
  std::atomic<void*> found_{nullptr};
};

// Names of kernels by their host functions, as their libraries registered them.
struct Registered {
  std::mutex mutex;
  std::unordered_map<const void*, const char*> names;
};

Registered& registered() {
  static auto* all = new Registered;
  return *all;
}

// By the runtime, where it tells (12.3); else as registered; else "unnamed kernel".
std::string kernel_name(const void* function, const void* caller) {
  static std::atomic<void*> ask{nullptr};
  void* known = ask.load();
  if (!known) ask = known = next_symbol("cudaFuncGetName", caller);  // 12.3
  const char* name = nullptr;
  if (known && reinterpret_cast<int (*)(const char**, const void*)>(known)(&name, function) == 0 &&
      name)
    return name;
  std::lock_guard<std::mutex> lock(registered().mutex);
  auto found = registered().names.find(function);
  return found == registered().names.end() ? "unnamed kernel" : found->second;
}

// Calls `next`; noted where nothing below it was.
template <typename Call, typename Tell>
int followed(Call call, Tell tell) {
  if (!launches::collecting()) return call();
  uint64_t before = launches::noted();
  int64_t start = launches::now_ns();
  int result = call();
  int64_t end = launches::now_ns();
  if (result == 0 && launches::noted() == before) tell(start, end);
  return result;
}

const char* copy_direction(int kind) {
  // cudaMemcpyKind
  constexpr const char* kNames[] = {"memcpy HtoH", "memcpy HtoD", "memcpy DtoH", "memcpy DtoD"};
  return kind >= 0 && kind < 4 ? kNames[kind] : "memcpy";
}

}  // namespace
}  // namespace opguard

using opguard::followed;
namespace launches = opguard::launches;

#define OPGUARD_EXPORT extern "C" __attribute__((visibility("default")))

// A function of the runtime by its name: parameters, arguments, what it does.
#define OPGUARD_HOOK(NAME, PARAMETERS, ARGUMENTS, KIND, WHAT, STREAM)                        \
  OPGUARD_EXPORT int NAME PARAMETERS {                                                       \
    static opguard::Next<int PARAMETERS> next(#NAME);                                        \
    const void* caller = __builtin_return_address(0);                                        \
    auto* real = next.find(&NAME, caller);                                                   \
    if (!real) return opguard::kUnknownError;                                                \
    return followed([&] { return real ARGUMENTS; },                                          \
                    [&](int64_t start, int64_t end) {                                        \
                      launches::note({KIND, std::string(WHAT).c_str(), STREAM, start, end}); \
                    });                                                                      \
  }
// And its twin for per-thread default streams.
#define OPGUARD_HOOKS(NAME, PARAMETERS, ARGUMENTS, KIND, WHAT, STREAM) \
  OPGUARD_HOOK(NAME, PARAMETERS, ARGUMENTS, KIND, WHAT, STREAM)        \
  OPGUARD_HOOK(NAME##_ptsz, PARAMETERS, ARGUMENTS, KIND, WHAT, STREAM)

using opguard::Dim3;

OPGUARD_HOOKS(cudaLaunchKernel,
              (const void* function, Dim3 grid, Dim3 block, void** arguments, size_t shared,
               void* stream),
              (function, grid, block, arguments, shared, stream), OPGUARD_ACTIVITY_KERNEL,
              opguard::kernel_name(function, caller), stream)
OPGUARD_HOOKS(cudaLaunchCooperativeKernel,
              (const void* function, Dim3 grid, Dim3 block, void** arguments, size_t shared,
               void* stream),
              (function, grid, block, arguments, shared, stream), OPGUARD_ACTIVITY_KERNEL,
              opguard::kernel_name(function, caller), stream)
OPGUARD_HOOKS(cudaLaunchKernelExC,
              (const opguard::RuntimeLaunchConfig* config, const void* function, void** arguments),
              (config, function, arguments), OPGUARD_ACTIVITY_KERNEL,
              opguard::kernel_name(function, caller), config ? config->stream : nullptr)
OPGUARD_HOOKS(cudaMemcpyAsync, (void* to, const void* from, size_t bytes, int kind, void* stream),
              (to, from, bytes, kind, stream), OPGUARD_ACTIVITY_MEMCPY,
              opguard::copy_direction(kind), stream)
OPGUARD_HOOK(cudaMemcpy, (void* to, const void* from, size_t bytes, int kind),
             (to, from, bytes, kind), OPGUARD_ACTIVITY_MEMCPY, opguard::copy_direction(kind),
             nullptr)
OPGUARD_HOOKS(cudaMemsetAsync, (void* at, int value, size_t bytes, void* stream),
              (at, value, bytes, stream), OPGUARD_ACTIVITY_MEMSET, "memset", stream)
OPGUARD_HOOK(cudaMemset, (void* at, int value, size_t bytes), (at, value, bytes),
             OPGUARD_ACTIVITY_MEMSET, "memset", nullptr)
OPGUARD_HOOKS(cudaGraphLaunch, (void* graph, void* stream), (graph, stream),
              OPGUARD_ACTIVITY_KERNEL, "cuda graph", stream)
OPGUARD_HOOKS(cudaStreamSynchronize, (void* stream), (stream), OPGUARD_ACTIVITY_SYNCHRONIZE,
              "synchronize stream", stream)
OPGUARD_HOOK(cudaDeviceSynchronize, (), (), OPGUARD_ACTIVITY_SYNCHRONIZE, "synchronize device",
             nullptr)
// A matrix product is one or more kernels of the library's own; where those are not seen, it is one
// activity.
OPGUARD_HOOK(cublasLtMatmul,
             (void* handle, void* description, const void* alpha, const void* a, void* a_layout,
              const void* b, void* b_layout, const void* beta, const void* c, void* c_layout,
              void* d, void* d_layout, const void* algorithm, void* workspace,
              size_t workspace_bytes, void* stream),
             (handle, description, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout,
              algorithm, workspace, workspace_bytes, stream),
             OPGUARD_ACTIVITY_KERNEL, "cublasLtMatmul", stream)

// Called for each kernel of a library when that is loaded, maybe before the tracer asks.
OPGUARD_EXPORT void __cudaRegisterFunction(void** fatbin, const char* function, char* device,
                                           const char* name, int limit, void* thread_id,
                                           void* block_id, void* block, void* grid, int* warp) {
  using Register =
      void(void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*);
  static opguard::Next<Register> next("__cudaRegisterFunction");
  const void* caller = __builtin_return_address(0);
  // Only a runtime that cannot be asked for the name later: torch registers a hundred thousand.
  static const bool told = opguard::next_symbol("cudaFuncGetName", caller) != nullptr;
  if (!told) {
    std::lock_guard<std::mutex> lock(opguard::registered().mutex);
    opguard::registered().names[function] = name;
  }
  if (auto* real = next.find(&__cudaRegisterFunction, caller))
    real(fatbin, function, device, name, limit, thread_id, block_id, block, grid, warp);
}
