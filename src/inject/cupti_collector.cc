// What CUPTI hands over, and where it goes.
//
//   kernel, copy, memset, wait    add(): with the number of the call that launched it
//   external correlation          correlate(): call 907 was made below id 12
//   API call                      nowhere: without these CUPTI records no correlation
//   a graph's node is made        captured(): below this thread's innermost id
//   a node is copied              cloned(): the copy is the original's
//
// Counterexample: a kernel's record before its call's. Buffers come in any order, and the list
// keeps the kernel until it knows (activity_list.h).
//
// The cost: records in buffers of 4 MiB. Nothing is asked of the device between flushes.
#include "inject/cupti_collector.h"

#include <atomic>
#include <cstdlib>

#include "inject/activity_list.h"
#include "inject/thread_ids.h"

namespace opguard::cupti {
namespace {

// CUPTI advises 1 to 10 MB.
constexpr size_t kBufferBytes = 4 << 20;

Library g_library;
Subscriber g_subscriber = nullptr;
std::atomic<bool> g_collecting{false};
std::string g_description;

// CUPTI wants room for records.
void requested(uint8_t** buffer, size_t* size, size_t* max_records) {
  // Without memory CUPTI drops records, and counts them.
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBufferBytes));
  *size = *buffer ? kBufferBytes : 0;
  *max_records = 0;  // as many as fit
}

// The first `valid` bytes of a buffer are records.
void completed(void* context, uint32_t stream, uint8_t* buffer, size_t, size_t valid) {
  if (buffer && valid) read_buffer(g_library.call, buffer, valid);
  size_t dropped = 0;
  if (g_library.call.dropped(context, stream, &dropped) == kSuccess && dropped)
    activities().lose(dropped);
  std::free(buffer);
}

// A graph's nodes are made while its stream is captured, by the threads that launch; its kernels
// run later, all in one call.
void resource(void*, uint32_t domain, uint32_t id, const void* data) {
  if (domain != kDomainResource || !data) return;
  auto* graph = static_cast<const GraphData*>(static_cast<const ResourceData*>(data)->descriptor);
  if (!graph) return;
  auto number = [](void* node) {
    uint64_t found = 0;
    return g_library.call.graph_node_id(node, &found) == kSuccess ? found : 0;
  };
  if (id == kGraphNodeCreated) {
    uint64_t node = number(graph->node), under = current_id();
    if (node && under) activities().captured(node, under);
  } else if (id == kGraphNodeCloned) {
    uint64_t node = number(graph->node), original = number(graph->original_node);
    if (node && original) activities().cloned(node, original);
  }
}

// CUPTI's own words, with what a user can do about it where that is known.
std::string text_of(int result) {
  const char* text = nullptr;
  std::string said = "CUPTI error " + std::to_string(result);
  if (g_library.call.result_string && g_library.call.result_string(result, &text) == kSuccess &&
      text)
    said = text;
  if (result == kMultipleSubscribers)
    said = "another tool holds CUPTI (a profiler, Nsight): " + said;
  if (result == kInsufficientPrivileges)
    said += ": profiling is for administrators here (NVreg_RestrictProfilingToAdminUsers)";
  return said;
}

const char* copy_name(uint8_t kind) {
  // CUpti_ActivityMemcpyKind
  constexpr const char* kNames[] = {"memcpy",      "memcpy HtoD", "memcpy DtoH", "memcpy HtoA",
                                    "memcpy AtoH", "memcpy AtoA", "memcpy AtoD", "memcpy DtoA",
                                    "memcpy DtoD", "memcpy HtoH", "memcpy PtoP"};
  return kind < sizeof kNames / sizeof *kNames ? kNames[kind] : kNames[0];
}

const char* wait_name(uint32_t type) {
  // CUpti_ActivitySynchronizationType
  constexpr const char* kNames[] = {"synchronize", "synchronize event", "stream waits for event",
                                    "synchronize stream", "synchronize context"};
  return type < sizeof kNames / sizeof *kNames ? kNames[type] : kNames[0];
}

// What the records of kernels, copies and memsets have alike, each in its own place.
template <typename Record>
Launched on_stream(const Record& r, uint32_t kind) {
  Launched launched;
  launched.kind = kind;
  launched.device = r.device;
  launched.stream = r.stream;
  launched.graph = r.graph;
  launched.start_ns = r.start_ns;
  launched.end_ns = r.end_ns;
  launched.launch = r.correlation;
  launched.graph_node = r.graph_node;
  return launched;
}

// Every record begins with its kind.
void read_record(const void* record) {
  switch (*static_cast<const uint32_t*>(record)) {
    case kConcurrentKernel: {
      auto& r = *static_cast<const KernelRecord*>(record);
      const char* name = r.name ? r.name : "";
      activities().add(
          on_stream(r, is_collective(name) ? OPGUARD_ACTIVITY_COLLECTIVE : OPGUARD_ACTIVITY_KERNEL),
          name);
      break;
    }
    case kMemcpy: {
      auto& r = *static_cast<const MemcpyRecord*>(record);
      activities().add(on_stream(r, OPGUARD_ACTIVITY_MEMCPY), copy_name(r.copy_kind));
      break;
    }
    case kMemcpyPeer: {
      auto& r = *static_cast<const MemcpyPeerRecord*>(record);
      activities().add(on_stream(r, OPGUARD_ACTIVITY_MEMCPY), copy_name(r.copy_kind));
      break;
    }
    case kMemset:
      activities().add(
          on_stream(*static_cast<const MemsetRecord*>(record), OPGUARD_ACTIVITY_MEMSET), "memset");
      break;
    case kSynchronization: {
      auto& r = *static_cast<const SynchronizationRecord*>(record);
      Launched launched;
      launched.kind = OPGUARD_ACTIVITY_SYNCHRONIZE;
      launched.stream = r.stream == UINT32_MAX ? 0 : r.stream;
      launched.start_ns = r.start_ns;
      launched.end_ns = r.end_ns;
      launched.launch = r.correlation;
      activities().add(launched, wait_name(r.type));
      break;
    }
    case kExternalCorrelation: {
      auto& r = *static_cast<const ExternalCorrelationRecord*>(record);
      if (r.external_kind == kCustom2) activities().correlate(r.correlation, r.external);
      break;
    }
    default:
      break;  // API calls, which are recorded so that external correlations are
  }
}

// 28: "API 28". 130000: "13.0".
std::string version_text(uint32_t version) {
  if (version == 0) return "of no known version";
  if (version < 130000) return "API " + std::to_string(version);
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100);
}

int enable_all(const Functions& call) {
  // An external correlation is recorded only with the record of an API call. Both kinds of calls
  // are needed, for runtime and for driver launches (Triton's).
  for (uint32_t kind : {kExternalCorrelation, kRuntime, kDriver, kConcurrentKernel})
    if (int result = call.enable(kind); result != kSuccess) return result;
  for (uint32_t kind : {kMemcpy, kMemcpyPeer, kMemset, kSynchronization}) call.enable(kind);
  return kSuccess;
}

void disable_all(const Functions& call) {
  for (uint32_t kind : {kExternalCorrelation, kRuntime, kDriver, kConcurrentKernel, kMemcpy,
                        kMemcpyPeer, kMemset, kSynchronization})
    call.disable(kind);
}

}  // namespace

void read_buffer(const Functions& call, uint8_t* buffer, size_t valid) {
  void* record = nullptr;
  int result;
  while ((result = call.next_record(buffer, valid, &record)) == kSuccess && record)
    read_record(record);
  // What follows a record that CUPTI itself cannot read is lost; how much, nobody knows.
  if (result != kSuccess && result != kMaxLimitReached) activities().lose(1);
}

bool start(const std::vector<std::string>& paths, std::string& error) {
  if (g_collecting) return true;
  if (g_library.path.empty() && !open_library(paths, g_library, error)) return false;
  const Functions& call = g_library.call;
  g_description = "CUPTI " + version_text(g_library.version) + ", " + g_library.path;
  // The subscription also tells whether we are alone. CUPTI's records go to one tool, the last that
  // asked, so that a second would take those of the first without a word.
  int result = call.subscribe(&g_subscriber, resource, nullptr);
  if (result == kSuccess) {
    if (call.graph_node_id)
      for (uint32_t id : {kGraphNodeCreated, kGraphNodeCloned})
        call.enable_callback(1, g_subscriber, kDomainResource, id);
    result = call.register_callbacks(requested, completed);
    if (result == kSuccess) result = enable_all(call);
    if (result != kSuccess) {
      disable_all(call);
      call.unsubscribe(g_subscriber);
    }
  }
  if (result != kSuccess) {
    error += (error.empty() ? "" : "; ") + g_library.path + ": " + text_of(result);
    return false;
  }
  g_collecting = true;
  give_ids_to(&g_library.call);
  return true;
}

void stop() {
  if (!g_collecting.exchange(false)) return;
  give_ids_to(nullptr);
  disable_all(g_library.call);
  g_library.call.flush_all(kFlushForced);
  g_library.call.unsubscribe(g_subscriber);
}

bool collecting() { return g_collecting; }

const std::string& description() { return g_description; }

void flush(bool forced) {
  if (g_collecting) g_library.call.flush_all(forced ? kFlushForced : 0);
}

}  // namespace opguard::cupti
