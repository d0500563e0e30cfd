// inject/activity_list.h: what the device did, kept until it is asked for. Any thread may add.
//
//   push(12)   cudaLaunchKernel: CUPTI's launch 907   pop       correlate(907, 12)
//   later      a kernel of launch 907 ran 3.1 to 3.4 ms         add: it is of 12
//   drain      (12, kernel, 3.1, 3.4) to the tracer
//
// Counterexample: all kernels of a graph have the number of the one call that launched the graph.
// Where they were captured says more, so a node's number comes first (captured, cloned).
//
// The cost: an entry an activity, forgotten once it is handed over; of launches the latest 2 to 4
// million.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "device/plugin.h"

namespace opguard {

struct Launched {
  uint32_t kind = OPGUARD_ACTIVITY_KERNEL;  // opguard_activity_kind
  uint32_t device = 0, stream = 0, graph = 0;
  uint64_t start_ns = 0, end_ns = 0;
  uint64_t id = 0;          // pushed around its launch; 0: not known yet, or none
  uint32_t launch = 0;      // CUPTI's number of the API call that launched it; 0: none
  uint64_t graph_node = 0;  // CUPTI's number of the graph's node it ran for; 0: none
  uint32_t flags = 0;       // OPGUARD_ACTIVITY_*
};

class ActivityList {
 public:
  void add(const Launched& launched, const char* name);
  // The API call `launch` was made below `id`.
  void correlate(uint32_t launch, uint64_t id);
  // The graph's node was made below `id`, or is a copy of `original`.
  void captured(uint64_t node, uint64_t id);
  void cloned(uint64_t node, uint64_t original);
  void lose(uint64_t count);

  // Gives each activity whose id is known, of `all` the others too, and forgets it.
  uint64_t drain(opguard_activity_sink sink, void* context, bool all);
  uint64_t dropped() const;
  // Of a forked child: all of it is the parent's.
  void clear();

 private:
  struct Entry {
    Launched launched;
    const std::string* name;
  };
  uint64_t id_of(const Launched& launched) const;

  mutable std::mutex mutex_;
  std::unordered_map<std::string, uint32_t> names_;  // its keys stay where they are
  std::vector<Entry> entries_;
  // API call -> id. A call's kernel comes long before as many further calls were made. The older
  // half is forgotten, or a long run would keep all it ever called.
  std::unordered_map<uint32_t, uint64_t> launches_, older_launches_;
  std::unordered_map<uint64_t, uint64_t> nodes_;
  uint64_t dropped_ = 0;
};

// Of this process.
ActivityList& activities();

// A kernel of a communication library (NCCL, RCCL and those built on them), by its name.
bool is_collective(const char* kernel);

}  // namespace opguard
