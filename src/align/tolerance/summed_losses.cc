// The sketch of a sum is the sum of the sketches, so losses are added up without their values.
//
//   a   step 3: 2.43 + 2.40       sums 4.83
//   b   step 3: 4.83              one loss, and fewer than a's two: the step is found
//
// Counterexample: a loss that is not finite is left out of the sum and of the count.
#include "align/tolerance/summed_losses.h"

#include <algorithm>
#include <map>

namespace opguard {
namespace {

struct SummedLosses {
  uint32_t number = 0;
  SketchSums sums{};
};

std::map<uint32_t, SummedLosses> by_step(const ProcessTensors& tensors, SketchReader& reader) {
  std::map<uint32_t, SummedLosses> found;
  for (const SketchedTensor& tensor : tensors.tensors) {
    if (tensor.activity.kind != EventKind::loss) continue;
    const Sketch* own = reader.own(tensor.at);
    if (own == nullptr || !own->finite()) continue;
    SummedLosses& sum = found[tensor.activity.step];
    ++sum.number;
    for (size_t i = 0; i < sum.sums.size(); ++i) sum.sums[i] += own->sums[i];
  }
  return found;
}

}  // namespace

std::set<uint32_t> steps_with_summed_losses(const ProcessTensors& reference, SketchReader& a,
                                            const std::vector<ProcessTensors>& ranks,
                                            SketchReader& b, double allowed) {
  const auto has_losses = [](const ProcessTensors& rank) {
    return std::any_of(rank.losses.begin(), rank.losses.end(), [](uint32_t n) { return n > 0; });
  };
  const auto only = std::find_if(ranks.begin(), ranks.end(), has_losses);
  if (only == ranks.end() || std::any_of(only + 1, ranks.end(), has_losses)) return {};
  const std::map<uint32_t, SummedLosses> whole = by_step(reference, a), mine = by_step(*only, b);
  std::set<uint32_t> found;
  for (const auto& [step, sum] : mine) {
    const auto other = whole.find(step);
    if (other == whole.end() || sum.number >= other->second.number) continue;
    const double size = std::max(norm(sum.sums), norm(other->second.sums));
    if (size > 0 && distance(sum.sums, other->second.sums) <= allowed * size) found.insert(step);
  }
  return found;
}

}  // namespace opguard
