// align/tolerance/noise_level.h: how far rounding alone moves each tensor of the reference.
//
//   the reference      y(a)
//   with jitter 1, 2   y(a'), y(a'')     noise = the largest of |y(a) - y(a')| / |y(a)|
//
// Counterexample: what jitter does not reach, as a copy or an integer, has no noise. Then the unit
// roundoff of its type is the least that is allowed.
//
// The cost: a distance of 64 numbers for each tensor and run.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "align/tolerance/tensors.h"

namespace opguard {

// Half the distance from 1 to the next number of a floating type; 0 for others.
double unit_roundoff(std::string_view dtype);

// Two sketches of one tensor, as logs hold them, may be so far apart.
inline constexpr double kSketchRounding = 1e-10;

class NoiseLevels {
 public:
  // Runs of several processes, or of none with sketches, tell nothing.
  NoiseLevels(const Run& reference, const ProcessTensors& tensors, const std::vector<Run>& noise,
              Texts& texts, StepsBy steps = StepsBy::optimizer);

  // Relative to its norm; 0 for one that no run has.
  double of(const SketchedTensor& tensor) const;

 private:
  void spread(const Run& reference, const ProcessTensors& tensors);

  std::unordered_map<uint64_t, double> levels_;  // by slot
};

}  // namespace opguard
