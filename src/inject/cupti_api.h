// inject/cupti_api.h: the part of NVIDIA's CUPTI that we call. It is declared from its
// documentation: docs.nvidia.com/cupti, CUPTI Activity API and Callback API. So one build works
// with every libcupti from CUDA 12.0 on, found at run time.
//
// Records. NVIDIA appends fields to a record from version to version (CUpti_ActivityKernel9 of 12.0
// to CUpti_ActivityKernel13 of 13.5), it moves none. The structs below are the common beginnings.
// Their length is never taken from here, cuptiActivityGetNextRecord knows it.
// tests/python/test_cupti_layout.py compares all offsets with NVIDIA's own headers where they are
// installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace opguard::cupti {

enum Kind : uint32_t {
  kMemcpy = 1,
  kMemset = 2,
  kDriver = 4,
  kRuntime = 5,
  kConcurrentKernel = 10,
  kMemcpyPeer = 22,
  kSynchronization = 38,
  kExternalCorrelation = 39,
};

// One of the three kinds free for tools; torch's profiler takes CUSTOM0 and CUSTOM1.
constexpr uint32_t kCustom2 = 5;

constexpr uint32_t kDomainResource = 3;
constexpr uint32_t kGraphNodeCreated = 13;
constexpr uint32_t kGraphNodeCloned = 20;

constexpr uint32_t kFlushForced = 1;

enum Result : int {
  kSuccess = 0,
  kMaxLimitReached = 12,  // of cuptiActivityGetNextRecord: the buffer's end
  kInsufficientPrivileges = 35,
  kMultipleSubscribers = 39,
};

// CUPTI_API_VERSION of CUDA 12.0 is 18 as it was in 11.8, of 12.2 20, of 13.0 130000.
constexpr uint32_t kOldestVersion = 18;

// Records are packed and aligned to 8 bytes.
struct KernelRecord {
  uint32_t kind;
  uint8_t configuration[12];
  uint64_t start_ns, end_ns, completed_ns;
  uint32_t device, context, stream;
  int32_t grid[3], block[3];
  int32_t static_shared, dynamic_shared;
  uint32_t local_per_thread, local_total;
  uint32_t correlation;
  int64_t grid_id;
  const char* name;
  void* reserved;
  uint64_t queued_ns, submitted_ns;
  uint8_t launch[8];
  uint64_t graph_node;
  uint32_t shared_limit;
  uint32_t graph;
};

struct MemcpyRecord {
  uint32_t kind;
  uint8_t copy_kind, source_kind, destination_kind, flags;
  uint64_t bytes, start_ns, end_ns;
  uint32_t device, context, stream;
  uint32_t correlation, runtime_correlation, padding;
  void* reserved;
  uint64_t graph_node;
  uint32_t graph;
};

// A copy between two devices' contexts.
struct MemcpyPeerRecord {
  uint32_t kind;
  uint8_t copy_kind, source_kind, destination_kind, flags;
  uint64_t bytes, start_ns, end_ns;
  uint32_t device, context, stream;
  uint32_t source_device, source_context, destination_device, destination_context;
  uint32_t correlation;
  void* reserved;
  uint64_t graph_node;
  uint32_t graph;
};

struct MemsetRecord {
  uint32_t kind, value;
  uint64_t bytes, start_ns, end_ns;
  uint32_t device, context, stream;
  uint32_t correlation;
  uint16_t flags, memory_kind;
  uint32_t padding;
  void* reserved;
  uint64_t graph_node;
  uint32_t graph;
};

// A wait, of the host or of a stream. It has no device; its stream is UINT32_MAX where it has none.
struct SynchronizationRecord {
  uint32_t kind, type;
  uint64_t start_ns, end_ns;
  uint32_t correlation, context, stream, event;
};

// The call `correlation` was made while `external` was the innermost id pushed.
struct ExternalCorrelationRecord {
  uint32_t kind, external_kind;
  uint64_t external;
  uint32_t correlation, reserved;
};

// What a resource callback points to, and what of it a graph's node points to.
struct ResourceData {
  void* context;
  void* stream;
  void* descriptor;
};

struct GraphData {
  void *graph, *original_graph;
  void *node, *original_node;
  uint32_t node_type;
  void *dependency, *executable;
};

using Subscriber = void*;
using Callback = void (*)(void* user, uint32_t domain, uint32_t id, const void* data);
using BufferRequested = void (*)(uint8_t** buffer, size_t* size, size_t* max_records);
using BufferCompleted = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t size,
                                 size_t valid);

// The library's functions; graph_node_id and result_string may be null.
struct Functions {
  int (*version)(uint32_t*) = nullptr;
  int (*subscribe)(Subscriber*, Callback, void*) = nullptr;
  int (*unsubscribe)(Subscriber) = nullptr;
  int (*enable_callback)(uint32_t enable, Subscriber, uint32_t domain, uint32_t id) = nullptr;
  int (*register_callbacks)(BufferRequested, BufferCompleted) = nullptr;
  int (*enable)(uint32_t kind) = nullptr;
  int (*disable)(uint32_t kind) = nullptr;
  int (*push)(uint32_t kind, uint64_t id) = nullptr;
  int (*pop)(uint32_t kind, uint64_t* last) = nullptr;
  int (*flush_all)(uint32_t flag) = nullptr;
  int (*next_record)(uint8_t* buffer, size_t valid, void** record) = nullptr;
  int (*dropped)(void* context, uint32_t stream, size_t* count) = nullptr;
  int (*graph_node_id)(void* node, uint64_t* id) = nullptr;
  int (*result_string)(int result, const char** text) = nullptr;
};

struct Library {
  Functions call;
  uint32_t version = 0;
  std::string path;
};

// The libcupti that the process has loaded already, else the first of `paths` that loads and is of
// CUDA 12 or later. `error` says why of each that is not. False: none is.
bool open_library(const std::vector<std::string>& paths, Library& library, std::string& error);

}  // namespace opguard::cupti
