// Levels are relative to the reference's norm, and kept by slot. The largest of all jittered runs
// counts: each draws once, and may move a tensor little by chance.
//
//   loss, 1 element      jitter moved it by 1e-9, its input by 3e-7     allowed 3e-7
//   top-k scores         moved by 0.4                                   a choice: not passed on
//
// The second pass is in the order of the events, so what an input is allowed is known before.
#include "align/tolerance/noise_level.h"

#include <algorithm>

#include "align/tolerance/reference_tensors.h"
#include "align/values/value_index.h"
#include "record/sketch.h"

namespace opguard {
namespace {

constexpr uint64_t kFewElements = 64;
// What jitter moves by more than this was chosen otherwise, and is no noise to be passed on.
constexpr double kChoice = 0.01;

uint64_t elements_of(const Meta& meta) {
  uint64_t n = 1;
  for (const int64_t size : meta.shape) n *= static_cast<uint64_t>(size);
  return n;
}

}  // namespace

double unit_roundoff(std::string_view dtype) {
  if (dtype == "float64") return 0x1p-53;
  if (dtype == "float32") return 0x1p-24;
  if (dtype == "float16") return 0x1p-11;
  if (dtype == "bfloat16") return 0x1p-8;
  return 0;
}

NoiseLevels::NoiseLevels(const Run& reference, const ProcessTensors& tensors,
                         const std::vector<Run>& noise, Texts& texts, StepsBy steps) {
  SketchReader mine(reference);
  for (const Run& run : noise) {
    const ProcessTensors jittered = reference_tensors(run, texts, steps);
    const TensorIndex index(jittered);
    SketchReader theirs(run);
    for (const SketchedTensor& tensor : tensors.tensors) {
      const SketchedTensor* other = index.find(tensor);
      if (other == nullptr || mine.meta(tensor.at).shape != theirs.meta(other->at).shape) continue;
      const Sketch *a = mine.own(tensor.at), *b = theirs.own(other->at);
      if (a == nullptr || b == nullptr) continue;
      const double of = norm(a->sums), apart = distance(a->sums, b->sums);
      double& level = levels_[slot_key(tensor.at)];
      level = std::max(level, apart == 0 ? 0 : of == 0 ? 1 : apart / of);
    }
  }
  spread(reference, tensors);
}

// One number moves by chance as little as by nothing: it is allowed what its inputs are.
void NoiseLevels::spread(const Run& reference, const ProcessTensors& tensors) {
  std::unordered_map<ValueKey, double, ValueKeyHash> of_value;
  for (const SketchedTensor& tensor : tensors.tensors) {
    const ProcessLog& log = reference.processes[static_cast<size_t>(tensor.at.event.process)];
    const Slot slot = log.slots[tensor.at.slot];
    double& level = levels_[slot_key(tensor.at)];
    if (slot.meta != kNone && elements_of(log.metas[slot.meta]) < kFewElements) {
      const EventSlots slots = log.slots_of(log.events[tensor.at.event.event]);
      for (const Slot& input : slots) {
        if (input.kind != SlotKind::in || !has_value(input)) continue;
        const auto known = of_value.find(value_key(log, input));
        if (known != of_value.end() && known->second < kChoice)
          level = std::max(level, known->second);
      }
    }
    if (has_value(slot)) of_value[value_key(log, slot)] = level;
  }
}

double NoiseLevels::of(const SketchedTensor& tensor) const {
  const auto known = levels_.find(slot_key(tensor.at));
  return known == levels_.end() ? 0 : known->second;
}

}  // namespace opguard
