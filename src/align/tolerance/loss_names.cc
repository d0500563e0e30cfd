// Boundary and module of a loss are overwritten in the tensors and in the counts of executions
// alike: a name is looked up in both. All ranks' places are taken together, so two stages that call
// backward() in two places have two, and nothing is renamed.
#include "align/tolerance/loss_names.h"

#include <set>
#include <tuple>
#include <utility>

namespace opguard {
namespace {

using NamedPlaces = std::set<std::pair<uint32_t, uint32_t>>;  // boundaries and modules

void add_places(const ProcessTensors& of, NamedPlaces& places) {
  for (const SketchedTensor& tensor : of.tensors)
    if (tensor.activity.kind == EventKind::loss)
      places.emplace(tensor.activity.boundary, tensor.activity.module);
}

}  // namespace

void name_losses(std::vector<ProcessTensors>& ranks, const ProcessTensors& reference) {
  NamedPlaces theirs, mine;
  add_places(reference, theirs);
  for (const ProcessTensors& rank : ranks) add_places(rank, mine);
  if (theirs.size() != 1 || mine.size() != 1 || theirs == mine) return;
  const auto rename = [&](Activity& activity) {
    if (activity.kind == EventKind::loss)
      std::tie(activity.boundary, activity.module) = *theirs.begin();
  };
  for (ProcessTensors& rank : ranks) {
    for (SketchedTensor& tensor : rank.tensors) rename(tensor.activity);
    decltype(rank.executions) executions;
    for (const auto& [own, times] : rank.executions) {
      Activity activity = own;
      rename(activity);
      executions[activity] += times;
    }
    rank.executions = std::move(executions);
  }
}

}  // namespace opguard
