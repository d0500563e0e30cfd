// The library opguard_inject.so: CUDA's activities for the preflight, as a device plugin
// (device/plugin.h) without values. Three ways lead into it. The tracer loads it (ctypes), or the
// CUDA driver does when it is initialised (CUDA_INJECTION64_PATH). Or the loader does before the
// program (LD_PRELOAD, for the interception). All get the same instance.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "device/plugin.h"
#include "inject/activity_list.h"
#include "inject/cupti_collector.h"
#include "inject/driver.h"
#include "inject/launches.h"
#include "inject/thread_ids.h"

namespace opguard {
namespace {

// For the device at the program's end: a collective whose peer has died never ends.
constexpr std::chrono::seconds kLongestWait{60};

// How far it has come:
//
//   idle        the tracer has not asked, or has stopped before the program used CUDA
//   armed       it has asked; the program has not initialised the driver
//   cupti       CUPTI collects
//   launches    it does not work here: launches are intercepted
//   nothing     neither works, or neither is wanted
//
// What collected stays told by source() after stop().
enum class State { idle, armed, cupti, launches, nothing };

// What the tracer asked for (opguard_inject_configure).
struct Wanted {
  bool cupti = true, launches = true;
  std::vector<std::string> paths;  // of libcupti, where the process has not loaded one
};

std::recursive_mutex g_mutex;  // CUPTI calls back while it is started
Wanted g_wanted;
State g_state = State::idle;
std::string g_why;     // not CUPTI, or not it any more
std::string g_source;  // of activities_source()

// Without empty ones.
std::vector<std::string> lines_of(const char* text) {
  std::vector<std::string> lines;
  std::string all = text ? text : "";
  for (size_t at = 0; at < all.size();) {
    size_t end = std::min(all.find('\n', at), all.size());
    if (end > at) lines.push_back(all.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// With the driver initialised, or about to be.
void begin() {
  std::lock_guard<std::recursive_mutex> lock(g_mutex);
  if (g_state != State::armed) return;
  g_state = State::nothing;
  if (g_wanted.cupti) {
    std::string why;
    if (cupti::start(g_wanted.paths, why)) {
      g_state = State::cupti;
      return;
    }
    g_why = "no CUPTI: " + why;
  }
  if (g_wanted.launches && launches::preloaded()) {
    launches::start();
    g_state = State::launches;
  } else if (g_wanted.launches) {
    g_why +=
        std::string(g_why.empty() ? "" : "; ") + "launches cannot be intercepted: not preloaded";
  }
}

int start(char* error, uint64_t capacity) {
  std::lock_guard<std::recursive_mutex> lock(g_mutex);
  if (g_state == State::idle) g_state = State::armed;
  // CUPTI would initialise the driver, and a process that has it cannot fork and use it: only after
  // the program itself has.
  return 0;
}

// `wait`: the program is at its end, and what has no id by now will get none.
uint64_t flush(opguard_activity_sink sink, void* context, int wait) {
  bool all = wait != 0;
  if (all) wait_for_devices(kLongestWait);
  cupti::flush(all);
  return activities().drain(sink, context, all);
}

void stop() {
  std::lock_guard<std::recursive_mutex> lock(g_mutex);
  cupti::stop();
  launches::stop();
  if (g_state == State::armed) g_state = State::idle;
}

// "CUPTI API 28, /path/libcupti.so.12", or "interception of launches (no CUPTI: ...)".
const char* source() {
  std::lock_guard<std::recursive_mutex> lock(g_mutex);
  switch (g_state) {
    case State::idle:
    case State::armed:
      g_source = "";  // the program has not used CUDA
      break;
    case State::cupti:
      g_source = cupti::description();
      break;
    case State::launches:
      g_source = "interception of launches";
      break;
    case State::nothing:
      g_source = "nothing";
  }
  if (!g_why.empty() && !g_source.empty()) g_source += " (" + g_why + ")";
  return g_source.c_str();
}

uint64_t dropped() { return activities().dropped(); }

}  // namespace
}  // namespace opguard

#define OPGUARD_EXPORT extern "C" __attribute__((visibility("default")))

// Whether CUPTI works here: 1, or 0; `text` then says why not, else which it is. For `opguard
// doctor`: it initialises the driver.
OPGUARD_EXPORT int opguard_inject_try(const char* paths, char* text, uint64_t capacity) {
  std::lock_guard<std::recursive_mutex> lock(opguard::g_mutex);
  std::string why;
  bool works = opguard::cupti::start(opguard::lines_of(paths), why);
  opguard::cupti::stop();
  const std::string& said = works ? opguard::cupti::description() : why;
  if (capacity) text[said.copy(text, capacity - 1)] = 0;
  return works;
}

// Before activities_start(). cupti, launches: whether to try. paths: files of libcupti, one a line.
OPGUARD_EXPORT void opguard_inject_configure(int cupti, int launches, const char* paths) {
  std::lock_guard<std::recursive_mutex> lock(opguard::g_mutex);
  opguard::g_wanted = {cupti != 0, launches != 0, opguard::lines_of(paths)};
}

// The program has initialised CUDA: for where the driver did not call InitializeInjection, because
// CUDA_INJECTION64_PATH is another tool's.
OPGUARD_EXPORT void opguard_inject_begin() { opguard::begin(); }

// Another tool is about to want CUPTI: it gets it, and launches are intercepted from here on, where
// they can be.
OPGUARD_EXPORT void opguard_inject_yield(const char* to) {
  using namespace opguard;
  std::lock_guard<std::recursive_mutex> lock(g_mutex);
  if (g_state == State::armed) g_wanted.cupti = false;
  if (g_state == State::armed || g_state == State::cupti)
    g_why = std::string("CUPTI was left to ") + (to ? to : "another tool");
  if (g_state != State::cupti) return;
  cupti::stop();
  g_state = State::armed;
  g_wanted.cupti = false;
  begin();
}

// In a forked child.
OPGUARD_EXPORT void opguard_inject_forked() { opguard::activities().clear(); }

// The driver calls it inside cuInit.
OPGUARD_EXPORT int InitializeInjection() {
  opguard::begin();
  return 1;
}

OPGUARD_EXPORT const opguard_device_plugin* opguard_device_plugin_v1() {
  static const opguard_device_plugin table = [] {
    opguard_device_plugin t;
    std::memset(&t, 0, sizeof t);
    t.abi = OPGUARD_DEVICE_ABI;
    t.size = sizeof t;
    t.device_type = "cuda";
    t.activities_start = opguard::start;
    t.activities_push = opguard::push_id;
    t.activities_pop = opguard::pop_id;
    t.activities_flush = opguard::flush;
    t.activities_dropped = opguard::dropped;
    t.activities_stop = opguard::stop;
    t.activities_source = opguard::source;
    return t;
  }();
  return &table;
}
