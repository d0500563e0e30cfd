// What is written down of one call, and by which layer of several.
//
//   cublasLtMatmul      noted() is 7
//   | cuLaunchKernel    notes a kernel: 8
//   back in it          8 is not 7, so it notes nothing itself
//
// The number is the thread's own: what other threads launch meanwhile does not count.
//
// Counterexample: a library that launches on a thread of its own. Both calls are noted.
#include "inject/launches.h"

#include <dlfcn.h>
#include <time.h>

#include <atomic>
#include <mutex>
#include <unordered_map>

#include "inject/activity_list.h"
#include "inject/driver.h"
#include "inject/launch_note.h"
#include "inject/thread_ids.h"

namespace opguard::launches {
namespace {

std::atomic<bool> g_collecting{false};
thread_local uint64_t t_noted = 0;

// Streams by order of first use; 0 is the default stream. One that is made where another was has
// its number.
uint32_t number_of(void* stream) {
  if (!stream) return 0;
  static std::mutex mutex;
  static auto* numbers = new std::unordered_map<void*, uint32_t>;
  std::lock_guard<std::mutex> lock(mutex);
  return numbers->emplace(stream, static_cast<uint32_t>(numbers->size() + 1)).first->second;
}

}  // namespace

// Whether the dlsym that the program finds lies in this library.
bool preloaded() {
  Dl_info first, own;
  void* dlsym_of_program = ::dlsym(RTLD_DEFAULT, "dlsym");
  return dlsym_of_program && dladdr(dlsym_of_program, &first) &&
         dladdr(reinterpret_cast<void*>(&preloaded), &own) && first.dli_fbase == own.dli_fbase;
}

void start() { g_collecting = true; }
void stop() { g_collecting = false; }
bool collecting() { return g_collecting.load(std::memory_order_relaxed); }

uint64_t noted() { return t_noted; }

int64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

void note(const Call& call) {
  ++t_noted;
  Launched launched;
  launched.kind = call.kind;
  launched.stream = number_of(call.stream);
  launched.start_ns = static_cast<uint64_t>(call.start_ns);
  launched.end_ns = static_cast<uint64_t>(call.end_ns);
  launched.id = current_id();
  launched.flags = OPGUARD_ACTIVITY_HOST_CLOCK;
  int device = 0, capturing = 0;
  if (const Driver* d = driver()) {
    if (d->current_device && d->current_device(&device) == 0)
      launched.device = static_cast<uint32_t>(device);
    // CU_STREAM_CAPTURE_STATUS_ACTIVE: the work is in a graph, which runs later, any number of
    // times.
    bool may_capture = call.stream && call.kind != OPGUARD_ACTIVITY_SYNCHRONIZE;
    if (may_capture && d->is_capturing && d->is_capturing(call.stream, &capturing) == 0 &&
        capturing == 1)
      launched.graph = 1;
  }
  if (launched.kind == OPGUARD_ACTIVITY_KERNEL && is_collective(call.name))
    launched.kind = OPGUARD_ACTIVITY_COLLECTIVE;
  activities().add(launched, call.name);
}

}  // namespace opguard::launches
