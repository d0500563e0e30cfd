// One name may have several functions: by version and by stream. So each name has several copies of
// ours (kSlots), and a copy keeps the one function that it calls on.
//
//   dlsym("cuLaunchKernel")         0x10 of the driver    copy 0, real 0x10
//   dlsym("cuLaunchKernel_ptsz")    0x20                  copy 1, real 0x20
//   cuGetProcAddress(...)           0x10                  copy 0 again
//
// Counterexample: a later driver's function of the same name with other parameters. is_known()
// compares it with those of the names we know, and it is left alone.
//
// The cost: two atomic loads a call while nothing is collected. Else two clocks, the kernel's name
// under a lock, and an entry in the list.
#include "inject/driver_hooks.h"

#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "device/plugin.h"
#include "inject/driver.h"
#include "inject/launch_note.h"
#include "inject/launches.h"
#include "inject/symbols.h"

namespace opguard {
namespace {

using Handle = void*;
using Pointer = uint64_t;  // CUdeviceptr

// The beginning of CUlaunchConfig.
struct LaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  Handle stream;
};

// Names that functions were asked by: drivers before 12.3 do not tell them.
class Names {
 public:
  void put(Handle function, std::string name) {
    std::lock_guard<std::mutex> lock(mutex_);
    names_[function] = std::move(name);
  }
  std::string of(Handle function) const {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = names_.find(function);
    return found == names_.end() ? "" : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<Handle, std::string> names_;
};

Names& names() {
  static auto* all = new Names;
  return *all;
}

// A launch takes a CUfunction, or a CUkernel cast to one.
std::string name_of(Handle function) {
  std::string known = names().of(function);
  if (!known.empty()) return known;
  const char* name = nullptr;
  if (const Driver* d = driver()) {
    if (d->function_name && d->function_name(&name, function) == 0 && name) return name;
    if (d->kernel_name && d->kernel_name(&name, function) == 0 && name) return name;
  }
  return "unnamed kernel";
}

// What one call did, as its arguments tell.
struct Told {
  uint32_t kind;
  std::string name;
  Handle stream;
};

// One driver function: what its arguments tell. The driver gives one name several addresses
// (per-thread default streams, versions). Each is called through its own copy of ours: kSlots.
constexpr int kSlots = 4;

template <auto tell, int slot>
struct Hook;

// Calls on; a call that failed, or below which another was noted already, is not noted.
template <typename... A, Told (*tell)(A...), int slot>
struct Hook<tell, slot> {
  static inline std::atomic<void*> real{nullptr};
  static int call(A... a) {
    auto next = reinterpret_cast<int (*)(A...)>(real.load(std::memory_order_acquire));
    if (!launches::collecting()) return next(a...);
    uint64_t before = launches::noted();
    int64_t start = launches::now_ns();
    int result = next(a...);
    int64_t end = launches::now_ns();
    if (result != 0 || launches::noted() != before) return result;
    Told told = tell(a...);
    launches::note({told.kind, told.name.c_str(), told.stream, start, end});
    return result;
  }
};

constexpr uint32_t kKernel = OPGUARD_ACTIVITY_KERNEL, kCopy = OPGUARD_ACTIVITY_MEMCPY,
                   kSet = OPGUARD_ACTIVITY_MEMSET, kWait = OPGUARD_ACTIVITY_SYNCHRONIZE;
using U = unsigned;
using Size = size_t;

// The parameters are those of the driver's functions, one of these for each list of them.
Told launch(Handle f, U, U, U, U, U, U, U, Handle stream, void**, void**) {
  return {kKernel, name_of(f), stream};
}
Told launch_ex(const LaunchConfig* config, Handle f, void**, void**) {
  return {kKernel, name_of(f), config ? config->stream : nullptr};
}
Told launch_cooperative(Handle f, U, U, U, U, U, U, U, Handle stream, void**) {
  return {kKernel, name_of(f), stream};
}
// What is in the graph cannot be told from here.
Told launch_graph(Handle, Handle stream) { return {kKernel, "cuda graph", stream}; }

Told copy(Pointer, Pointer, Size) { return {kCopy, "memcpy", nullptr}; }
Told copy_async(Pointer, Pointer, Size, Handle stream) { return {kCopy, "memcpy", stream}; }
Told copy_in(Pointer, const void*, Size) { return {kCopy, "memcpy HtoD", nullptr}; }
Told copy_in_async(Pointer, const void*, Size, Handle stream) {
  return {kCopy, "memcpy HtoD", stream};
}
Told copy_out(void*, Pointer, Size) { return {kCopy, "memcpy DtoH", nullptr}; }
Told copy_out_async(void*, Pointer, Size, Handle stream) { return {kCopy, "memcpy DtoH", stream}; }
Told copy_within(Pointer, Pointer, Size) { return {kCopy, "memcpy DtoD", nullptr}; }
Told copy_within_async(Pointer, Pointer, Size, Handle stream) {
  return {kCopy, "memcpy DtoD", stream};
}
Told copy_peer_async(Pointer, Handle, Pointer, Handle, Size, Handle stream) {
  return {kCopy, "memcpy PtoP", stream};
}
Told copy_box_async(const void*, Handle stream) { return {kCopy, "memcpy", stream}; }

Told set8(Pointer, unsigned char, Size) { return {kSet, "memset", nullptr}; }
Told set16(Pointer, unsigned short, Size) { return {kSet, "memset", nullptr}; }
Told set32(Pointer, unsigned, Size) { return {kSet, "memset", nullptr}; }
Told set8_async(Pointer, unsigned char, Size, Handle stream) { return {kSet, "memset", stream}; }
Told set16_async(Pointer, unsigned short, Size, Handle stream) { return {kSet, "memset", stream}; }
Told set32_async(Pointer, unsigned, Size, Handle stream) { return {kSet, "memset", stream}; }

Told wait_stream(Handle stream) { return {kWait, "synchronize stream", stream}; }
Told wait_event(Handle) { return {kWait, "synchronize event", nullptr}; }
// Of 13.0 it takes the context; before, what it is given is not looked at.
Told wait_context(Handle) { return {kWait, "synchronize context", nullptr}; }

bool is_followed(const char* name);

// Not launches, but what they need to be told.
template <typename Which, int slot>
struct NamesOf {
  static inline std::atomic<void*> real{nullptr};
  static int call(Handle* function, Handle module, const char* name) {
    auto next = reinterpret_cast<int (*)(Handle*, Handle, const char*)>(real.load());
    int result = next(function, module, name);
    if (result == 0 && function && name) names().put(*function, name);
    return result;
  }
};

template <int slot>
using FunctionNames = NamesOf<struct OfModule, slot>;
template <int slot>
using KernelNames = NamesOf<struct OfLibrary, slot>;

// The name of a kernel goes on to the function that is made of it.
template <int slot>
struct KernelFunction {
  static inline std::atomic<void*> real{nullptr};
  static int call(Handle* function, Handle kernel) {
    auto next = reinterpret_cast<int (*)(Handle*, Handle)>(real.load());
    int result = next(function, kernel);
    if (result == 0 && function) {
      std::string name = names().of(kernel);
      if (!name.empty()) names().put(*function, name);
    }
    return result;
  }
};

// Names with a second version whose parameters ours has too.
bool has_known_second(std::string_view name) {
  return name.starts_with("cuMem") || name == "cuCtxSynchronize";
}

// Of CUDA 13.5 the last that was looked at. A later one may give other functions under these names.
constexpr int kNewestVersion = 13999;

// Whether what cuGetProcAddress gave for a name, asked for that version, has the parameters we
// know.
bool is_known(const char* name, int version, void* found) {
  if (version <= kNewestVersion) return true;
  void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return false;
  bool known = false;
  for (const char* second : {"", "_v2"})
    for (const char* stream : {"", "_ptsz", "_ptds"})
      if (!*second || has_known_second(name))
        known = known || symbol_of(library, (std::string(name) + second + stream).c_str()) == found;
  dlclose(library);
  dlerror();  // of names that this driver does not have
  return known;
}

// What the program asked cuGetProcAddress for, ours in its place. The name has neither version nor
// stream in it; `found` is the function of the version asked for.
void hook_address(const char* name, int version, void** found) {
  if (!name || !found || !*found) return;
  if (std::strcmp(name, "cuGetProcAddress") == 0)  // of 12.0 it is the second version
    *found = hooked_driver_symbol(version >= 12000 ? "cuGetProcAddress_v2" : name, *found);
  else if (is_followed(name) && is_known(name, version, *found))
    *found = hooked_driver_symbol(name, *found);
}

// cuGetProcAddress as it was before 12.0.
template <int slot>
struct Addresses {
  static inline std::atomic<void*> real{nullptr};
  static int call(const char* name, void** found, int version, uint64_t flags) {
    auto next = reinterpret_cast<int (*)(const char*, void**, int, uint64_t)>(real.load());
    int result = next(name, found, version, flags);
    if (result == 0) hook_address(name, version, found);
    return result;
  }
};

// The same since 12.0, which also tells a status.
template <int slot>
struct AddressesV2 {
  static inline std::atomic<void*> real{nullptr};
  static int call(const char* name, void** found, int version, uint64_t flags, int* status) {
    auto next = reinterpret_cast<int (*)(const char*, void**, int, uint64_t, int*)>(real.load());
    int result = next(name, found, version, flags, status);
    if (result == 0) hook_address(name, version, found);
    return result;
  }
};

// A place for one function of the driver's, and ours that calls it.
struct Slot {
  std::atomic<void*>* real;
  void* ours;
};

struct Entry {
  const char* name;
  Slot slots[kSlots];
};

template <template <int> class H, int... slot>
constexpr Entry entry_of(const char* name, std::integer_sequence<int, slot...>) {
  return {name, {{&H<slot>::real, reinterpret_cast<void*>(&H<slot>::call)}...}};
}

template <template <int> class H>
Entry entry_of(const char* name) {
  return entry_of<H>(name, std::make_integer_sequence<int, kSlots>());
}

template <auto tell, int... slot>
Entry launch_entry(const char* name, std::integer_sequence<int, slot...>) {
  return {name, {{&Hook<tell, slot>::real, reinterpret_cast<void*>(&Hook<tell, slot>::call)}...}};
}

// Each with slots of its own: names must not share a function of ours.
template <auto tell>
Entry follow(const char* name) {
  return launch_entry<tell>(name, std::make_integer_sequence<int, kSlots>());
}

// Every name that is followed, without version and stream.
const Entry* entries(size_t& count) {
  static const Entry kEntries[] = {
      follow<launch>("cuLaunchKernel"),
      follow<launch_ex>("cuLaunchKernelEx"),
      follow<launch_cooperative>("cuLaunchCooperativeKernel"),
      follow<launch_graph>("cuGraphLaunch"),
      follow<copy>("cuMemcpy"),
      follow<copy_async>("cuMemcpyAsync"),
      follow<copy_in>("cuMemcpyHtoD"),
      follow<copy_in_async>("cuMemcpyHtoDAsync"),
      follow<copy_out>("cuMemcpyDtoH"),
      follow<copy_out_async>("cuMemcpyDtoHAsync"),
      follow<copy_within>("cuMemcpyDtoD"),
      follow<copy_within_async>("cuMemcpyDtoDAsync"),
      follow<copy_peer_async>("cuMemcpyPeerAsync"),
      follow<copy_box_async>("cuMemcpy2DAsync"),
      follow<set8>("cuMemsetD8"),
      follow<set16>("cuMemsetD16"),
      follow<set32>("cuMemsetD32"),
      follow<set8_async>("cuMemsetD8Async"),
      follow<set16_async>("cuMemsetD16Async"),
      follow<set32_async>("cuMemsetD32Async"),
      follow<wait_stream>("cuStreamSynchronize"),
      follow<wait_event>("cuEventSynchronize"),
      follow<wait_context>("cuCtxSynchronize"),
      entry_of<FunctionNames>("cuModuleGetFunction"),
      entry_of<KernelNames>("cuLibraryGetKernel"),
      entry_of<KernelFunction>("cuKernelGetFunction"),
      entry_of<Addresses>("cuGetProcAddress"),
      entry_of<AddressesV2>("cuGetProcAddress_v2"),
  };
  count = sizeof kEntries / sizeof *kEntries;
  return kEntries;
}

// Without what marks the per-thread default stream, and a second version that is like the first.
std::string_view base_name(std::string_view name) {
  for (std::string_view end : {"_ptsz", "_ptds"})
    if (name.ends_with(end)) name.remove_suffix(end.size());
  std::string_view first = name.substr(0, name.size() - (name.ends_with("_v2") ? 3 : 0));
  return has_known_second(first) ? first : name;
}

// Null for all that is not the driver's, by its form first: "cudaMalloc" and "cublasCreate" have no
// capital after "cu".
const Entry* entry_named(std::string_view name) {
  if (!name.starts_with("cu") || name.size() < 3 || name[2] < 'A' || name[2] > 'Z') return nullptr;
  name = base_name(name);
  size_t count = 0;
  const Entry* all = entries(count);
  for (size_t i = 0; i < count; ++i)
    if (name == all[i].name) return &all[i];
  return nullptr;
}

bool is_followed(const char* name) { return entry_named(name) != nullptr; }

}  // namespace

void* hooked_driver_symbol(const char* name, void* found) {
  const Entry* entry = entry_named(name);
  if (!entry) return found;
  for (const Slot& slot : entry->slots)
    if (found == slot.ours) return found;
  for (const Slot& slot : entry->slots) {
    void* none = nullptr;
    if (slot.real->compare_exchange_strong(none, found) || none == found) return slot.ours;
  }
  return found;  // more versions than slots: the program goes on, its launches uncounted
}

}  // namespace opguard

// The driver's own names, for libraries that are linked with it (Triton's).
#define OPGUARD_DRIVER(NAME, PARAMETERS, ARGUMENTS)                                \
  extern "C" __attribute__((visibility("default"))) int NAME PARAMETERS {          \
    static std::atomic<void*> next{nullptr};                                       \
    void* known = next.load(std::memory_order_acquire);                            \
    if (!known) {                                                                  \
      void* found = opguard::next_symbol(#NAME, __builtin_return_address(0));      \
      if (!found || found == reinterpret_cast<void*>(&NAME)) return kUnknownError; \
      next.store(known = opguard::hooked_driver_symbol(#NAME, found));             \
    }                                                                              \
    return reinterpret_cast<int(*) PARAMETERS>(known) ARGUMENTS;                   \
  }

namespace {
constexpr int kUnknownError = 999;  // CUDA_ERROR_UNKNOWN: the function is nowhere to be found
}

OPGUARD_DRIVER(cuLaunchKernel,
               (void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                unsigned bz, unsigned shared, void* stream, void** arguments, void** extra),
               (f, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra))
OPGUARD_DRIVER(cuLaunchKernelEx, (const void* config, void* f, void** arguments, void** extra),
               (config, f, arguments, extra))
OPGUARD_DRIVER(cuLaunchCooperativeKernel,
               (void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                unsigned bz, unsigned shared, void* stream, void** arguments),
               (f, gx, gy, gz, bx, by, bz, shared, stream, arguments))
OPGUARD_DRIVER(cuModuleGetFunction, (void** function, void* module, const char* name),
               (function, module, name))
