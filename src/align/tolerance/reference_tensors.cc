// Two replicas of two micro-batches each become one process of four.
//
//   rank 0   s0: fwd fwd  grads  params       merged   s0: fwd fwd (rank 0), fwd fwd (rank 1),
//   rank 1   s0: fwd fwd  grads  params                    grads params (rank 0)
//
// An execution's number of rank 1 is moved up by how often rank 0 ran the same activity.
// Parameters, gradients and what the optimizer left are taken of rank 0 alone.
//
// Counterexample: replicas that part later. They are told by their first parameters alone, and rank
// 0's stand for all of them from then on.
#include "align/tolerance/reference_tensors.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "align/values/value_index.h"

namespace opguard {
namespace {

std::vector<int32_t> sketched_processes(const Run& run) {
  std::vector<int32_t> found;
  for (size_t i = 0; i < run.processes.size(); ++i)
    if (!run.processes[i].sketches.empty()) found.push_back(static_cast<int32_t>(i));
  return found;
}

// A parameter, a gradient, or what an optimizer left: replicas have the same.
bool is_of_all(const Activity& activity) {
  return activity.kind == EventKind::state || activity.kind == EventKind::optimizer ||
         activity.phase == Phase::optimizer;
}

struct Weights {
  std::vector<int64_t> shape;
  Fingerprint value;
  bool operator==(const Weights&) const = default;
};

std::map<std::string, Weights> parameters_at_first(const Run& run, int32_t process) {
  std::map<std::string, Weights> found;
  Texts texts;
  const ProcessLog& log = run.processes[static_cast<size_t>(process)];
  for (const SketchedTensor& tensor : tensors_of(run, process, texts).tensors) {
    const std::string& name = texts.text(tensor.slot);
    const Slot slot = log.slots[tensor.at.slot];
    if (tensor.activity.kind == EventKind::state && kind_of_slot(name) == "param:" &&
        slot.meta != kNone && has_value(slot))
      found.try_emplace(name, Weights{log.metas[slot.meta].shape, slot.value});
  }
  return found;
}

// Where the passes of a step end in `tensors`, from `begin` on, and where the step does.
std::pair<size_t, size_t> ends_of_step(const std::vector<SketchedTensor>& tensors, size_t begin) {
  const uint32_t step = tensors[begin].activity.step;
  size_t end = begin;
  while (end < tensors.size() && tensors[end].activity.step == step) ++end;
  size_t passes = end;
  while (passes > begin && is_of_all(tensors[passes - 1].activity)) --passes;
  return {passes, end};
}

}  // namespace

bool are_replicas(const Run& reference) {
  const std::vector<int32_t> processes = sketched_processes(reference);
  if (processes.size() < 2) return true;
  const auto first = parameters_at_first(reference, processes.front());
  return !first.empty() &&
         std::all_of(processes.begin() + 1, processes.end(), [&](int32_t process) {
           return parameters_at_first(reference, process) == first;
         });
}

ProcessTensors reference_tensors(const Run& reference, Texts& texts, StepsBy steps) {
  std::vector<ProcessTensors> all;
  for (const int32_t process : sketched_processes(reference))
    all.push_back(tensors_of(reference, process, texts, steps));
  return replicas_as_one(std::move(all));
}

ProcessTensors replicas_as_one(std::vector<ProcessTensors> all) {
  if (all.empty()) return {};
  if (all.size() == 1) return std::move(all.front());

  ProcessTensors merged;
  for (ProcessTensors& rank : all) {
    const bool first = &rank == &all.front();
    if (!first)
      std::erase_if(rank.tensors, [](const auto& tensor) { return is_of_all(tensor.activity); });
    for (SketchedTensor& tensor : rank.tensors)
      if (const auto before = merged.executions.find(tensor.activity);
          before != merged.executions.end())
        tensor.execution += before->second;
    for (const auto& [activity, times] : rank.executions)
      if (first || !is_of_all(activity)) merged.executions[activity] += times;
    if (merged.losses.size() < rank.losses.size()) merged.losses.resize(rank.losses.size());
    for (size_t step = 0; step < rank.losses.size(); ++step)
      merged.losses[step] += rank.losses[step];
  }
  const std::vector<SketchedTensor>& lead = all.front().tensors;
  std::vector<size_t> read(all.size(), 0);
  const auto take = [&](size_t rank, size_t end) {
    const auto& from = all[rank].tensors;
    merged.tensors.insert(merged.tensors.end(), from.begin() + static_cast<ptrdiff_t>(read[rank]),
                          from.begin() + static_cast<ptrdiff_t>(end));
    read[rank] = end;
  };
  while (read[0] < lead.size()) {
    const uint32_t step = lead[read[0]].activity.step;
    const auto [passes, end] = ends_of_step(lead, read[0]);
    take(0, passes);
    for (size_t rank = 1; rank < all.size(); ++rank) {
      size_t until = read[rank];
      while (until < all[rank].tensors.size() && all[rank].tensors[until].activity.step <= step)
        ++until;
      take(rank, until);
    }
    take(0, end);
  }
  for (size_t rank = 1; rank < all.size(); ++rank) take(rank, all[rank].tensors.size());
  return merged;
}

}  // namespace opguard
