// Records which functions of the CUDA driver a program calls, in order. Preloaded (LD_PRELOAD), it
// stands before dlsym, as src/inject does. It gives every function of libcuda, however it is asked
// for, through a thunk that notes the call and jumps on. By it check_driver_calls.py compares a
// program with probes and without. x86-64 only.
//
// A line per call: thread, function, stream, 1 if the caller is the object whose file name contains
// DRIVER_RECORDER_OURS, kernel. What goes through cuGetExportTable is not seen.
#include <dlfcn.h>
#include <link.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "inject/driver_hooks.h"
#include "inject/symbols.h"

// Thunk i pushes i and jumps on; driver_called() answers with the address to go to. Arguments are
// given on as they came, in registers and on the stack.
asm(R"(
  .text
  .balign 16
  .type driver_thunks, @object
driver_thunks:
  .set i, 0
  .rept 4096
    .balign 16
    pushq $i
    jmp driver_thunk
    .set i, i + 1
  .endr
driver_thunk:
  pushq %rdi
  pushq %rsi
  pushq %rdx
  pushq %rcx
  pushq %r8
  pushq %r9
  pushq %rax
  subq $136, %rsp
  movups %xmm0, (%rsp)
  movups %xmm1, 16(%rsp)
  movups %xmm2, 32(%rsp)
  movups %xmm3, 48(%rsp)
  movups %xmm4, 64(%rsp)
  movups %xmm5, 80(%rsp)
  movups %xmm6, 96(%rsp)
  movups %xmm7, 112(%rsp)
  leaq 136(%rsp), %rdi
  call driver_called
  movq %rax, %r11
  movups (%rsp), %xmm0
  movups 16(%rsp), %xmm1
  movups 32(%rsp), %xmm2
  movups 48(%rsp), %xmm3
  movups 64(%rsp), %xmm4
  movups 80(%rsp), %xmm5
  movups 96(%rsp), %xmm6
  movups 112(%rsp), %xmm7
  addq $136, %rsp
  popq %rax
  popq %r9
  popq %r8
  popq %rcx
  popq %rdx
  popq %rsi
  popq %rdi
  addq $8, %rsp
  jmpq *%r11
)");
extern "C" __attribute__((visibility("hidden"))) const char driver_thunks[];

namespace {

constexpr size_t kThunks = 4096;
constexpr uint64_t kThunkBytes = 16;

struct Function {
  std::string name;
  void* real = nullptr;
  int stream = -1;  // which argument
  bool launch = false;
};

struct Call {
  const Function* function;
  long thread;
  uint64_t stream;
  bool ours;
  std::string kernel;
};

struct Recorder {
  std::mutex mutex;
  Function functions[kThunks];
  size_t count = 0;
  std::vector<Call> calls;
  uint64_t low = 0, high = 0;  // code of the object that is ours
};
std::atomic<bool> g_on{false};

Recorder& recorder() {
  static auto* r = new Recorder;
  return *r;
}

std::string_view base_of(std::string_view name) {
  for (std::string_view end : {"_ptsz", "_ptds"})
    if (name.ends_with(end)) name.remove_suffix(end.size());
  if (name.size() > 3 && name[name.size() - 3] == '_' && name[name.size() - 2] == 'v')
    name.remove_suffix(3);
  return name;
}

int stream_argument(std::string_view base) {
  constexpr struct {
    std::string_view name;
    int argument;
  } kKnown[] = {
      {"cuLaunchKernel", 8},    {"cuLaunchCooperativeKernel", 8}, {"cuGraphLaunch", 1},
      {"cuEventRecord", 1},     {"cuEventRecordWithFlags", 1},    {"cuMemcpyAsync", 3},
      {"cuMemcpyHtoDAsync", 3}, {"cuMemcpyDtoHAsync", 3},         {"cuMemcpyDtoDAsync", 3},
      {"cuMemcpy2DAsync", 1},   {"cuMemcpyPeerAsync", 5},         {"cuMemsetD8Async", 3},
      {"cuMemsetD16Async", 3},  {"cuMemsetD32Async", 3},          {"cuMemAllocAsync", 2},
      {"cuMemFreeAsync", 1},    {"cuLaunchHostFunc", 0}};
  for (const auto& known : kKnown)
    if (base == known.name) return known.argument;
  return base.starts_with("cuStream") && !base.starts_with("cuStreamCreate") ? 0 : -1;
}

// saved: rax, r9, r8, rcx, rdx, rsi, rdi, the thunk's number, the return address, the stack's.
uint64_t argument(const uint64_t* saved, int k) { return k < 6 ? saved[6 - k] : saved[9 + k - 6]; }

std::string kernel_name(uint64_t handle) {
  void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return "?";
  for (const char* ask : {"cuFuncGetName", "cuKernelGetName"}) {
    using Ask = int (*)(const char**, uint64_t);
    const auto name_of = reinterpret_cast<Ask>(opguard::symbol_of(library, ask));
    const char* name = nullptr;
    if (name_of != nullptr && name_of(&name, handle) == 0 && name != nullptr) return name;
  }
  return "?";
}

extern "C" __attribute__((visibility("hidden"), used)) void* driver_called(const uint64_t* saved) {
  Recorder& r = recorder();
  const Function& function = r.functions[saved[7]];
  if (!g_on.load(std::memory_order_relaxed)) return function.real;
  Call call{&function, syscall(SYS_gettid), 0, saved[8] >= r.low && saved[8] < r.high, ""};
  if (function.stream >= 0) call.stream = argument(saved, function.stream);
  if (function.launch) {
    const bool by_config = base_of(function.name) == "cuLaunchKernelEx";
    call.kernel = kernel_name(argument(saved, by_config ? 1 : 0));
    // CUlaunchConfig: seven words, then the stream.
    if (by_config) std::memcpy(&call.stream, reinterpret_cast<char*>(argument(saved, 0)) + 32, 8);
  }
  // Not before: the loader, which is asked for the name, may be waiting for us in another thread.
  const std::lock_guard lock(r.mutex);
  r.calls.push_back(std::move(call));
  return function.real;
}

void* thunk_of(const char* name, void* real) {
  Recorder& r = recorder();
  const std::lock_guard lock(r.mutex);
  size_t i = 0;
  while (i < r.count && !(r.functions[i].real == real && r.functions[i].name == name)) ++i;
  if (i == kThunks) return real;
  if (i == r.count) {
    const std::string_view base = base_of(name);
    r.functions[i] = {name, real, stream_argument(base),
                      base.starts_with("cuLaunch") && base.find("Kernel") != base.npos};
    ++r.count;
  }
  return const_cast<char*>(driver_thunks) + i * kThunkBytes;
}

bool is_thunk(void* address) {
  const auto at = reinterpret_cast<const char*>(address);
  return at >= driver_thunks && at < driver_thunks + kThunks * kThunkBytes;
}

using Find = int (*)(const char*, void**, int, uint64_t);
using FindV2 = int (*)(const char*, void**, int, uint64_t, int*);
std::atomic<Find> g_find{nullptr};
std::atomic<FindV2> g_find_v2{nullptr};

void given(const char* name, int version, void** found) {
  if (name == nullptr || found == nullptr || *found == nullptr) return;
  const bool second = std::strcmp(name, "cuGetProcAddress") == 0 && version >= 12000;
  *found = opguard::hooked_driver_symbol(second ? "cuGetProcAddress_v2" : name, *found);
}
int find(const char* name, void** found, int version, uint64_t flags) {
  const int result = g_find.load()(name, found, version, flags);
  if (result == 0) given(name, version, found);
  return result;
}
int find_v2(const char* name, void** found, int version, uint64_t flags, int* status) {
  const int result = g_find_v2.load()(name, found, version, flags, status);
  if (result == 0) given(name, version, found);
  return result;
}

int find_ours(dl_phdr_info* info, size_t, void* name) {
  if (std::strstr(info->dlpi_name, static_cast<const char*>(name)) == nullptr) return 0;
  Recorder& r = recorder();
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || !(part.p_flags & PF_X)) continue;
    r.low = info->dlpi_addr + part.p_vaddr;
    r.high = r.low + part.p_memsz;
  }
  return 1;
}

}  // namespace

namespace opguard {

void* hooked_driver_symbol(const char* name, void* found) {
  if (std::strncmp(name, "cu", 2) != 0 || name[2] < 'A' || name[2] > 'Z' || is_thunk(found))
    return found;
  if (found == reinterpret_cast<void*>(find) || found == reinterpret_cast<void*>(find_v2))
    return found;
  Dl_info object;
  if (!dladdr(found, &object) || !object.dli_fname || !std::strstr(object.dli_fname, "libcuda.so"))
    return found;
  if (std::strcmp(name, "cuGetProcAddress") == 0) {
    g_find = reinterpret_cast<Find>(found);
    return reinterpret_cast<void*>(find);
  }
  if (std::strcmp(name, "cuGetProcAddress_v2") == 0) {
    g_find_v2 = reinterpret_cast<FindV2>(found);
    return reinterpret_cast<void*>(find_v2);
  }
  return thunk_of(name, found);
}

}  // namespace opguard

#define EXPORT extern "C" __attribute__((visibility("default")))

// For libraries that are linked with the driver.
#define LINKED(NAME, PARAMETERS, ARGUMENTS)                                        \
  EXPORT int NAME PARAMETERS {                                                     \
    static std::atomic<void*> next{nullptr};                                       \
    if (next.load() == nullptr) {                                                  \
      void* found = opguard::next_symbol(#NAME, __builtin_return_address(0));      \
      if (found == nullptr || found == reinterpret_cast<void*>(&NAME)) return 999; \
      next.store(opguard::hooked_driver_symbol(#NAME, found));                     \
    }                                                                              \
    return reinterpret_cast<int(*) PARAMETERS>(next.load()) ARGUMENTS;             \
  }
LINKED(cuLaunchKernel,
       (void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
        unsigned shared, void* stream, void** arguments, void** extra),
       (f, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra))
LINKED(cuLaunchKernelEx, (const void* config, void* f, void** arguments, void** extra),
       (config, f, arguments, extra))
LINKED(cuLaunchCooperativeKernel,
       (void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
        unsigned shared, void* stream, void** arguments),
       (f, gx, gy, gz, bx, by, bz, shared, stream, arguments))

EXPORT void driver_recorder_start() {
  const char* ours = std::getenv("DRIVER_RECORDER_OURS");
  if (ours != nullptr) dl_iterate_phdr(find_ours, const_cast<char*>(ours));
  g_on = true;
}
EXPORT void driver_recorder_stop() { g_on = false; }

// What was recorded, since the last time.
EXPORT int driver_recorder_write(const char* path) {
  Recorder& r = recorder();
  const std::lock_guard lock(r.mutex);
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) return 1;
  for (const Call& c : r.calls)
    std::fprintf(file, "%ld\t%s\t%llx\t%d\t%s\n", c.thread, c.function->name.c_str(),
                 static_cast<unsigned long long>(c.stream), c.ours, c.kernel.c_str());
  r.calls.clear();
  return std::fclose(file);
}
