// The driver's functions in the order in which a launch needs them, and what may go wrong with
// each.
//
//   the first tensor on cuda:0    its primary context, a pinned ring, scratch, the kernel from PTX
//   a launch                      is the context still ours? is the stream captured? plan, scratch
//   drain                         the ring is read; after a silent second the context is looked at
//
// Nothing here waits for the device's work: what a stream has done shows in the ring.
//
// Scratch is a variable of a module, since loading one gives it zeroed: a memset would go onto a
// stream of the program's. Each stream has its own, and each launch of a captured graph too, for
// branches run side by side.
//
// Counterexample: cudaDeviceReset. The context is gone and its handles are none; so its number is
// asked before anything of it is used. What it still owed is counted as lost.
#include "device/cuda.h"

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "device/cuda_driver.h"
#include "device/cuda_kernels.h"
#include "device/cuda_options.h"
#include "device/og1_plan.h"
#include "device/ring_reader.h"

namespace opguard {
namespace {

using device::LargeLaunch;
using device::Plan;
using device::RingEntry;
using device::SmallLaunch;

constexpr int kMaxDevices = 64;
// Scratch is a variable of a module: loading gives it zeroed, without a memset on any stream.
constexpr uint64_t kPoolBytes = 8 << 20;
constexpr char kPoolModule[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .global .align 16 .b8 opguard_pool[8388608];\n";
// Launches of one stream come one after the other, so they share this.
constexpr uint64_t kStreamScratch = 256 << 10;

CudaOptions g_options;
CudaDriver g_driver;
std::atomic<bool> g_open{false};
std::mutex g_problem_mutex;
std::string g_problem;

void tell(std::string problem) {
  const std::lock_guard lock(g_problem_mutex);
  g_problem = std::move(problem);
}

bool failed(int error, const char* what) {
  if (error != 0) tell(std::string(what) + ": " + g_driver.name_of(error));
  return error != 0;
}

CudaModule load_module(const char* ptx) {
  char log[2048] = "";
  int options[] = {kCudaJitErrorLog, kCudaJitErrorLogBytes};
  void* values[] = {log, reinterpret_cast<void*>(sizeof(log) - 1)};
  CudaModule module = nullptr;
  const int error = g_driver.cuModuleLoadDataEx(&module, ptx, 2, options, values);
  if (error == 0) return module;
  log[sizeof(log) - 1] = 0;
  tell("the driver refuses the kernels: " + g_driver.name_of(error) + (log[0] ? ": " : "") + log);
  return nullptr;
}

// Zeroed device memory that is never given back.
class Scratch {
 public:
  // 0: none. The device's context is current.
  CudaAddress take(uint64_t bytes) {
    bytes = (bytes + 127) & ~uint64_t{127};
    if (bytes > left_) {
      if (bytes > kPoolBytes || pools_ == kMaxPools) return 0;
      const Uncaptured uncaptured(g_driver);
      const CudaModule module = load_module(kPoolModule);
      CudaAddress pool = 0;
      size_t size = 0;
      if (module == nullptr ||
          failed(g_driver.cuModuleGetGlobal_v2(&pool, &size, module, "opguard_pool"),
                 "cuModuleGetGlobal") ||
          size < kPoolBytes)
        return 0;
      ++pools_;
      at_ = pool;
      left_ = kPoolBytes;
    }
    const CudaAddress taken = at_;
    at_ += bytes;
    left_ -= bytes;
    return taken;
  }

 private:
  static constexpr int kMaxPools = 64;
  CudaAddress at_ = 0;
  uint64_t left_ = 0;
  int pools_ = 0;
};

// Pinned memory for the ring, zeroed. Ours, not the driver's, where that can be. For
// cudaDeviceReset and the driver's own end take back what it has allocated, while a thread still
// reads here. Shared, so that a fork does not part the device from what the parent reads.
void* pinned(uint64_t bytes, bool& own) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  constexpr unsigned kFlags = kCudaHostPortable | kCudaHostDeviceMap;
  own = memory != MAP_FAILED;
  if (own && g_driver.cuMemHostRegister_v2(memory, bytes, kFlags) == 0) return memory;
  if (own) munmap(memory, bytes);
  own = false;
  if (failed(g_driver.cuMemHostAlloc(&memory, bytes, kFlags), "cuMemHostAlloc")) return nullptr;
  std::memset(memory, 0, bytes);
  return memory;
}

// One device of the program: its primary context, which is the one that torch uses.
class Device {
 public:
  // Once; another thread's call waits for it.
  bool ready(int ordinal) {
    if (state_.load(std::memory_order_acquire) == kReady) return true;
    const std::lock_guard lock(mutex_);
    if (state_ == kNew) state_ = start(ordinal) ? kReady : kFailed;
    return state_ == kReady;
  }

  uint64_t capture(CudaStream stream) {
    if (!alive()) return 0;
    const CurrentContext current(g_driver, context_);
    uint64_t id = 0;
    return current.good() && capturing(stream, id) && id != 0 ? id : 0;
  }

  uint32_t launch(CudaStream stream, const opguard_tensor* tensors, uint32_t count,
                  device::Mode mode) {
    // Before anything that was its context's is used: after a reset those are no handles.
    if (!alive()) return 0;
    const CurrentContext current(g_driver, context_);
    uint64_t capture = 0, stream_id = 0;
    // A stream that cannot be asked cannot be launched on either: a legacy stream beside a capture.
    if (!current.good() || !capturing(stream, capture)) return 0;
    // Of a stream that is captured the number is not needed, and to ask for it ends the capture.
    if (capture == 0 && failed(g_driver.cuStreamGetId(stream, &stream_id), "cuStreamGetId"))
      return 0;
    uint32_t done = 0;
    while (done < count) {
      Plan plan(limits_);
      uint32_t some = 0;
      while (done + some < count && plan.add(tensors[done + some], mode)) ++some;
      if (some == 0 || !launch(stream, plan, capture, stream_id)) break;
      done += some;
    }
    return done;
  }

  uint64_t drain(opguard_value_sink sink, void* context) {
    if (state_.load(std::memory_order_acquire) != kReady) return 0;
    if (gone_.load(std::memory_order_acquire) && !own_ring_) return 0;
    const uint64_t given = reader_->drain(sink, context);
    // Where nothing comes any more, is there still somebody to write?
    const auto now = std::chrono::steady_clock::now();
    if (given > 0 || now - looked_ > kIdle) {
      if (given == 0) alive();
      looked_ = now;
    }
    return given;
  }
  uint64_t lost() const {
    if (state_.load(std::memory_order_acquire) != kReady) return 0;
    return gone_.load(std::memory_order_acquire) ? kAllLost : reader_->lost();
  }

 private:
  enum State { kNew, kReady, kFailed };
  static constexpr uint64_t kAllLost = uint64_t{1} << 62;
  static constexpr std::chrono::seconds kIdle{1};

  // Whether the context is still the one we began with. A context's number is never another's.
  bool alive() {
    if (gone_.load(std::memory_order_acquire)) return false;
    unsigned long long id = 0;
    const int error = g_driver.cuCtxGetId(context_, &id);
    if (error == 0 && id == context_id_) return true;
    tell("the context of cuda:" + std::to_string(ordinal_) + " was destroyed (cudaDeviceReset?)" +
         (error != 0 ? ": " + g_driver.name_of(error) : ""));
    gone_.store(true, std::memory_order_release);
    return false;
  }

  bool start(int ordinal) {
    int handle = 0, multiprocessors = 0;
    if (failed(g_driver.cuDeviceGet(&handle, ordinal), "cuDeviceGet") ||
        failed(
            g_driver.cuDeviceGetAttribute(&multiprocessors, kCudaAttributeMultiprocessors, handle),
            "cuDeviceGetAttribute") ||
        failed(g_driver.cuDevicePrimaryCtxRetain(&context_, handle), "cuDevicePrimaryCtxRetain") ||
        failed(g_driver.cuCtxGetId(context_, &context_id_), "cuCtxGetId"))
      return false;
    ordinal_ = ordinal;
    const CurrentContext current(g_driver, context_);
    if (!current.good()) return false;
    const Uncaptured uncaptured(g_driver);
    limits_.blocks =
        static_cast<uint32_t>(std::max(multiprocessors, 1)) * g_options.blocks_per_multiprocessor;
    limits_.scratch_bytes = kStreamScratch;
    void* ring = pinned(g_options.ring_entries * sizeof(RingEntry), own_ring_);
    if (ring == nullptr ||
        failed(g_driver.cuMemHostGetDevicePointer_v2(&ring_, ring, 0), "cuMemHostGetDevicePointer"))
      return false;
    counter_ = scratch_.take(sizeof(uint64_t));
    if (counter_ == 0) return false;
    // Those of most launches, before the program is measured or captured.
    for (const CudaKernel kernel : {kSmall, kPlainSmall})
      if (function_of(kernel) == nullptr) return false;
    reader_.emplace(static_cast<const RingEntry*>(ring), g_options.ring_entries);
    return true;
  }

  // Null where it can't be loaded. Under the mutex, but for start().
  CudaFunction function_of(CudaKernel kernel) {
    CudaFunction& function = functions_[kernel];
    if (function != nullptr) return function;
    const Uncaptured uncaptured(g_driver);
    const CudaModule module = load_module(ptx_of(kernel));
    if (module == nullptr ||
        failed(g_driver.cuModuleGetFunction(&function, module, name_of(kernel)),
               "cuModuleGetFunction"))
      return nullptr;
    // With lazy loading a kernel is loaded by its first launch, unless it is asked for.
    if (g_driver.cuFuncLoad != nullptr) g_driver.cuFuncLoad(function);
    return function;
  }

  static bool capturing(CudaStream stream, uint64_t& id) {
    int status = 0;
    id = 0;
    if (failed(g_driver.cuStreamGetCaptureInfo_v2(stream, &status, &id, nullptr, nullptr, nullptr),
               "cuStreamGetCaptureInfo"))
      return false;
    if (status != kCudaCaptureActive)
      id = 0;
    else if (id == 0)
      id = ~uint64_t{0};
    return true;
  }

  bool launch(CudaStream stream, const Plan& plan, uint64_t capture, uint64_t stream_id) {
    CudaAddress scratch = 0;
    if (const uint64_t bytes = plan.scratch_bytes(); bytes > 0) {
      const std::lock_guard lock(mutex_);
      if (capture != 0) {
        // Branches of a graph run side by side, so each of its launches has its own for good.
        scratch = scratch_.take(bytes);
      } else {
        // By the stream's number: its address may be another's after it was destroyed.
        CudaAddress& of_stream = of_streams_[stream_id];
        if (of_stream == 0) of_stream = scratch_.take(kStreamScratch);
        scratch = of_stream;
      }
      if (scratch == 0) return false;
    }
    LargeLaunch launch;
    launch.head = {ring_, counter_, g_options.ring_entries, plan.jobs()};
    const uint64_t words = plan.write(launch.words, scratch);
    static_assert(offsetof(SmallLaunch, words) == offsetof(LargeLaunch, words));
    const bool small = words <= device::kSmallWords;
    const CudaKernel kernel =
        plan.plain() ? (small ? kPlainSmall : kPlainLarge) : (small ? kSmall : kLarge);
    CudaFunction function = nullptr;
    if (small) {
      function = functions_[kernel];
    } else {
      const std::lock_guard lock(mutex_);
      function = function_of(kernel);
      if (function == nullptr) return false;
    }
    void* parameters[] = {&launch};
    // Before 12.4 a kernel may be loaded as late as by its first launch.
    std::optional<Uncaptured> loading;
    if (!launched_[kernel].exchange(true, std::memory_order_relaxed)) loading.emplace(g_driver);
    return !failed(g_driver.cuLaunchKernel(function, plan.blocks(), 1, 1, device::kThreads, 1, 1, 0,
                                           stream, parameters, nullptr),
                   "cuLaunchKernel");
  }

  std::atomic<State> state_{kNew};
  std::mutex mutex_;
  CudaContext context_ = nullptr;
  unsigned long long context_id_ = 0;
  int ordinal_ = 0;
  std::atomic<bool> gone_{false};
  bool own_ring_ = false;
  std::chrono::steady_clock::time_point looked_;  // of the thread that drains
  device::Limits limits_;
  std::array<CudaFunction, kCudaKernels> functions_ = {};
  std::atomic<bool> launched_[kCudaKernels] = {};
  CudaAddress ring_ = 0, counter_ = 0;
  Scratch scratch_;
  std::unordered_map<uint64_t, CudaAddress> of_streams_;
  std::optional<RingReader> reader_;
};

// Never destroyed: threads may still come while the process ends.
std::array<Device, kMaxDevices>& devices() {
  static auto* all = new std::array<Device, kMaxDevices>;
  return *all;
}

Device* ready_device(int ordinal) {
  if (!g_open.load(std::memory_order_acquire) || ordinal < 0 || ordinal >= kMaxDevices)
    return nullptr;
  Device& device = devices()[static_cast<size_t>(ordinal)];
  return device.ready(ordinal) ? &device : nullptr;
}

int open(char* error, uint64_t capacity) {
  std::string why;
  int result = 0;
  if (ptx_of(kSmall) == nullptr) {
    why = "this opguard was built without CUDA kernels: clang++-19 was not there";
    result = ENOSYS;
  } else {
    result = g_driver.load(g_options.library.c_str(), why);
  }
  if (result == 0) {
    // CUDA is of no use in a forked child, and the ring is the parent's.
    static const int registered =
        pthread_atfork(nullptr, nullptr, [] { g_open.store(false, std::memory_order_release); });
    (void)registered;
    g_open.store(true, std::memory_order_release);
  } else {
    tell(why);
    if (capacity > 0) {
      const size_t n = std::min<size_t>(why.size(), capacity - 1);
      std::memcpy(error, why.data(), n);
      error[n] = 0;
    }
  }
  return result;
}

uint32_t fingerprint(int ordinal, void* stream, const opguard_tensor* tensors, uint32_t count) {
  Device* device = ready_device(ordinal);
  return device == nullptr ? 0 : device->launch(stream, tensors, count, device::kRows);
}

uint64_t capture(int ordinal, void* stream) {
  Device* device = ready_device(ordinal);
  return device == nullptr ? 0 : device->capture(stream);
}

uint64_t drain(opguard_value_sink sink, void* context, uint64_t wait_ns) {
  // As often as makes no load; a record takes a few microseconds to come.
  constexpr uint64_t kNapNs = 50'000;
  for (;;) {
    if (!g_open.load(std::memory_order_acquire)) return 0;
    uint64_t given = 0;
    for (Device& device : devices()) given += device.drain(sink, context);
    if (given > 0 || wait_ns == 0) return given;
    const uint64_t nap = std::min(wait_ns, kNapNs);
    const timespec t = {0, static_cast<long>(nap)};
    nanosleep(&t, nullptr);
    wait_ns -= nap;
  }
}

uint64_t lost() {
  uint64_t sum = 0;
  for (const Device& device : devices()) sum += device.lost();
  return sum;
}

// Nothing is freed: launches under way still write the ring.
void close() { g_open.store(false, std::memory_order_release); }

const char* problem() {
  static thread_local std::string text;
  text = cuda_problem();
  return text.c_str();
}

constexpr opguard_device_plugin kTable = {
    .abi = OPGUARD_DEVICE_ABI,
    .size = sizeof(opguard_device_plugin),
    .device_type = "cuda",
    .open = open,
    .fingerprint = fingerprint,
    .capture = capture,
    .drain = drain,
    .lost = lost,
    .close = close,
    .activities_start = nullptr,
    .activities_push = nullptr,
    .activities_pop = nullptr,
    .activities_flush = nullptr,
    .activities_dropped = nullptr,
    .activities_stop = nullptr,
    .activities_source = nullptr,
    .problem = problem,
};

}  // namespace

const opguard_device_plugin* cuda_device_plugin() { return &kTable; }

void set_cuda_options(const CudaOptions& options) { g_options = options; }

uint32_t cuda_xor(int ordinal, void* stream, const opguard_tensor* tensors, uint32_t count) {
  Device* device = ready_device(ordinal);
  return device == nullptr ? 0 : device->launch(stream, tensors, count, device::kXor);
}

std::string cuda_problem() {
  const std::lock_guard lock(g_problem_mutex);
  return g_problem;
}

}  // namespace opguard
