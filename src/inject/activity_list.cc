// Whose an activity is: by the id it came with (interception), else by its graph's node, else by
// the call that launched it.
//
//   kernel of call 907, no node       id of call 907
//   kernel of call 950, node 31       id of node 31: call 950 launched the whole graph
//   kernel of call 960, never told    it waits; at the end it is given out with id 0
//
// A name is kept once, however many activities have it. Calls are forgotten in two halves: once
// there are 2 million, the half before them goes.
#include "inject/activity_list.h"

#include <cstring>

namespace opguard {
namespace {

constexpr size_t kMostLaunches = 2 << 20;  // CUPTI's buffers hold some tens of thousands of kernels

}  // namespace

void ActivityList::add(const Launched& launched, const char* name) {
  std::lock_guard<std::mutex> lock(mutex_);
  const std::string& kept = names_.emplace(name ? name : "", 0).first->first;
  entries_.push_back({launched, &kept});
}

void ActivityList::correlate(uint32_t launch, uint64_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (launches_.size() >= kMostLaunches) {
    older_launches_ = std::move(launches_);
    launches_.clear();
  }
  launches_[launch] = id;
}

void ActivityList::captured(uint64_t node, uint64_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  nodes_[node] = id;
}

// A copy of a copy too: the original's id is looked up when it is made.
void ActivityList::cloned(uint64_t node, uint64_t original) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = nodes_.find(original);
  if (found != nodes_.end()) nodes_[node] = found->second;
}

void ActivityList::lose(uint64_t count) {
  std::lock_guard<std::mutex> lock(mutex_);
  dropped_ += count;
}

// All kernels of a graph have the number of the one call that launched the graph: where they were
// captured says more.
uint64_t ActivityList::id_of(const Launched& launched) const {
  if (launched.id) return launched.id;
  if (launched.graph_node) {
    auto node = nodes_.find(launched.graph_node);
    if (node != nodes_.end()) return node->second;
  }
  for (const auto* launches : {&launches_, &older_launches_}) {
    auto launch = launches->find(launched.launch);
    if (launch != launches->end()) return launch->second;
  }
  return 0;
}

uint64_t ActivityList::drain(opguard_activity_sink sink, void* context, bool all) {
  std::vector<Entry> given;
  {
    // CUPTI hands out the call's record and the kernel's in any order and different buffers: an
    // activity without an id may get it later.
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<Entry> waiting;
    for (Entry& entry : entries_) {
      entry.launched.id = id_of(entry.launched);
      (entry.launched.id || all ? given : waiting).push_back(entry);
    }
    entries_ = std::move(waiting);
  }
  for (const Entry& entry : given) {
    const Launched& l = entry.launched;
    opguard_activity activity = {entry.name->c_str(),
                                 l.id,
                                 l.start_ns,
                                 l.end_ns,
                                 l.kind,
                                 l.device,
                                 l.stream,
                                 l.graph,
                                 l.flags,
                                 0};
    sink(context, &activity);
  }
  return given.size();
}

uint64_t ActivityList::dropped() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return dropped_;
}

// The names stay: the child's kernels have the same ones.
void ActivityList::clear() {
  std::lock_guard<std::mutex> lock(mutex_);
  entries_.clear();
  launches_.clear();
  older_launches_.clear();
  nodes_.clear();
  dropped_ = 0;
}

ActivityList& activities() {
  // Never destroyed: CUPTI's threads may hand over records while the process ends.
  static auto* list = new ActivityList;
  return *list;
}

bool is_collective(const char* kernel) {
  // ncclDevKernel_AllReduce_Sum_f32_RING_LL(...), ncclKernel_... before NCCL 2.19; mangled or not.
  for (const char* word :
       {"ncclDevKernel", "ncclKernel", "ncclDevFunc", "rcclKernel", "msccl", "nvshmemi_"})
    if (std::strstr(kernel, word)) return true;
  return false;
}

}  // namespace opguard
