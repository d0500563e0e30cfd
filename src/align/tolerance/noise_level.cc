#include "align/tolerance/noise_level.h"

#include <algorithm>

#include "align/tolerance/comparison.h"
#include "record/sketch.h"

namespace opguard {

double unit_roundoff(std::string_view dtype) {
  if (dtype == "float64") return 0x1p-53;
  if (dtype == "float32") return 0x1p-24;
  if (dtype == "float16") return 0x1p-11;
  if (dtype == "bfloat16") return 0x1p-8;
  return 0;
}

NoiseLevels::NoiseLevels(const Run& reference, const ProcessTensors& tensors,
                         const std::vector<Run>& noise, Texts& texts) {
  SketchReader mine(reference);
  for (const Run& run : noise) {
    const int32_t process = only_process(run);
    if (process < 0) continue;
    const ProcessTensors jittered = tensors_of(run, process, texts);
    const TensorIndex index(jittered);
    SketchReader theirs(run);
    for (const SketchedTensor& tensor : tensors.tensors) {
      const SketchedTensor* other = index.find(tensor);
      if (other == nullptr || mine.meta(tensor.at).shape != theirs.meta(other->at).shape) continue;
      const SketchSums &a = mine.sets(tensor.at)[0].sketches[0].sums,
                       &b = theirs.sets(other->at)[0].sketches[0].sums;
      const double of = norm(a), apart = distance(a, b);
      double& level = levels_[tensor.at.slot];
      level = std::max(level, apart == 0 ? 0 : of == 0 ? 1 : apart / of);
    }
  }
}

double NoiseLevels::of(const SketchedTensor& tensor) const {
  const auto known = levels_.find(tensor.at.slot);
  return known == levels_.end() ? 0 : known->second;
}

}  // namespace opguard
