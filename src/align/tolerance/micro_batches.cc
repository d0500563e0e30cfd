// Up to 12 probes a step vote by their distances.
//
//   probes of a rank    results of forward operators that run equally often in each micro-batch
//   local 0             0: 3.1    1: 0.2    2: 2.9    3: 3.0      it is the reference's 1
//   local 1             0: 1.6    1: 1.9    2: 2.1    3: 2.0      0 is not 4 times nearer: its own
//
// A probe's distance counts as 1 at most: what has nothing in common must not outvote the others.
//
// Counterexample: a probe that is the same in all micro-batches, as of what a model is built of. It
// is near to each, and tells nothing.
#include "align/tolerance/micro_batches.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>

#include "align/tolerance/placement.h"

namespace opguard {
namespace {

constexpr size_t kMostProbes = 12;
// The nearest micro-batch is taken where it is so many times nearer than the one of its number.
constexpr double kNearer = 4;

// How many micro-batches a rank without a loss of its own has in a step, as a stage of a pipeline.
// Most activities tell.
std::map<uint32_t, uint32_t> told_by_layers(const ProcessTensors& rank,
                                            const MicroBatchCounts& counts) {
  std::map<uint32_t, std::map<uint32_t, uint32_t>> votes;
  for (const auto& [activity, times] : rank.executions)
    if (const uint32_t each = counts.runs_each(activity); each > 0 && times % each == 0)
      ++votes[activity.step][times / each];
  std::map<uint32_t, uint32_t> told;
  for (const auto& [step, of] : votes)
    told[step] = std::max_element(of.begin(), of.end(), [](const auto& a, const auto& b) {
                   return a.second < b.second;
                 })->first;
  return told;
}

// Whether the reference has another value in another of its micro-batches. What a model is built of
// tells nothing.
bool differs_by_batch(const MicroBatches::Reference& reference, const SketchedTensor& probe,
                      uint32_t batches, uint32_t each) {
  if (batches == 1) return true;
  std::optional<SketchSums> first;
  for (uint32_t batch = 0; batch < batches; ++batch) {
    SketchedTensor name = probe;
    name.execution = batch * each;
    const SketchedTensor* whole = reference.index.find(name);
    const Sketch* own = whole == nullptr ? nullptr : reference.sketches.own(whole->at);
    if (own == nullptr) return false;
    if (first && own->sums != *first) return true;
    first = own->sums;
  }
  return false;
}

bool has_twice(std::vector<uint32_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return std::adjacent_find(numbers.begin(), numbers.end()) != numbers.end();
}

}  // namespace

uint32_t MicroBatchCounts::of_step(uint32_t step) const {
  return step < reference_.losses.size() ? std::max(reference_.losses[step], 1u) : 1;
}

uint32_t MicroBatchCounts::runs_each(const Activity& activity) const {
  const auto known = reference_.executions.find(activity);
  if (known == reference_.executions.end()) return 0;
  const uint32_t batches = of_step(activity.step);
  return known->second % batches == 0 ? known->second / batches : 0;
}

MicroBatches::MicroBatches(const Reference& reference, const std::vector<ProcessTensors>& candidate,
                           const Run& run, SketchReader& sketches)
    : reference_(reference.tensors), candidate_(candidate), counts_(reference.tensors) {
  for (size_t process = 0; process < candidate.size(); ++process) {
    const ProcessTensors& rank = candidate[process];
    const auto number = static_cast<int32_t>(process);
    std::map<uint32_t, uint32_t> batches = told_by_layers(rank, counts_);
    for (size_t step = 0; step < rank.losses.size(); ++step)
      if (rank.losses[step] > 0) batches[static_cast<uint32_t>(step)] = rank.losses[step];
    std::map<uint32_t, std::vector<const SketchedTensor*>> probes;  // by step: the first of each
    for (const SketchedTensor& tensor : rank.tensors) {
      const Activity& activity = tensor.activity;
      const uint32_t each = counts_.runs_each(activity);
      const auto of_step = batches.find(activity.step);
      if (each == 0 || tensor.execution != 0 || of_step == batches.end() ||
          activity.kind != EventKind::op || activity.phase != Phase::forward ||
          rank.executions.at(activity) != each * of_step->second)
        continue;
      auto& of = probes[activity.step];
      if (of.size() < kMostProbes &&
          differs_by_batch(reference, tensor, counts_.of_step(activity.step), each))
        of.push_back(&tensor);
    }
    // By activity and slot: where the executions of the rank's tensors are.
    std::map<std::pair<const SketchedTensor*, uint32_t>, SlotRef> at;
    for (const SketchedTensor& tensor : rank.tensors)
      for (const SketchedTensor* probe : probes[tensor.activity.step])
        if (probe->activity == tensor.activity && probe->slot == tensor.slot &&
            probe->node == tensor.node && probe->again == tensor.again)
          at[{probe, tensor.execution}] = tensor.at;
    for (const auto& [step, count] : batches) {
      std::vector<uint32_t>& global = global_[{number, step}];
      const uint32_t all = counts_.of_step(step);
      for (uint32_t local = 0; local < count; ++local) {
        std::vector<double> apart(all, 0);
        for (const SketchedTensor* probe : probes[step]) {
          const uint32_t each = counts_.runs_each(probe->activity);
          const auto mine = at.find({probe, local * each});
          if (mine == at.end()) continue;
          const Sketch* held = sketches.own(mine->second);
          if (held == nullptr) continue;
          const RankValue value{0, sketches.meta(mine->second).shape, held->sums};
          for (uint32_t other = 0; other < all; ++other) {
            SketchedTensor name = *probe;
            name.execution = other * each;
            const SketchedTensor* whole = reference.index.find(name);
            if (whole == nullptr) continue;
            const WholeValue of{reference.sketches.meta(whole->at).shape,
                                reference.sketches.sets(whole->at, {value.shape})};
            apart[other] += of.sets.empty() ? 1 : std::min(1.0, nearest_piece(of, value));
          }
        }
        const auto nearest =
            static_cast<uint32_t>(std::min_element(apart.begin(), apart.end()) - apart.begin());
        const uint32_t own = std::min(local, all - 1);
        global.push_back(apart[nearest] * kNearer < apart[own] ? nearest : own);
      }
      if (count == all && has_twice(global)) std::iota(global.begin(), global.end(), 0);
      for (uint32_t local = 0; local < count; ++local)
        places_.push_back({number, run.processes[process].rank, step, local, global[local]});
    }
  }
}

uint32_t MicroBatches::count_of(int32_t process, uint32_t step) const {
  const auto known = global_.find({process, step});
  return known == global_.end() ? 0 : static_cast<uint32_t>(known->second.size());
}

uint32_t MicroBatches::execution(int32_t process, const Activity& activity,
                                 uint32_t execution) const {
  const auto whole = reference_.executions.find(activity);
  if (whole == reference_.executions.end()) return kNone;
  const auto& mine = candidate_[static_cast<size_t>(process)].executions;
  const auto held = mine.find(activity);
  if (held == mine.end()) return kNone;
  const uint32_t each = counts_.runs_each(activity), batches = count_of(process, activity.step);
  // Parameters are of no micro-batch, though a step of one has them as often.
  if (activity.kind != EventKind::state && each > 0 && batches > 0 &&
      held->second == each * batches) {
    const uint32_t global = global_.at({process, activity.step})[execution / each];
    return global * each + execution % each;
  }
  // Both do it all, as data is often made for every rank.
  return held->second == whole->second ? execution : kNone;
}

}  // namespace opguard
