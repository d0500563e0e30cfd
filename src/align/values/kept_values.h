// align/values/kept_values.h: what a program keeps beside its parameters, compared: module buffers
// and what it saves to files.
#pragma once

#include <optional>
#include <vector>

#include "align/values/model_values.h"

namespace opguard {

struct KeptComparison {
  bool compared = false;
  std::optional<ModelDifference> first;
  std::vector<Reasons> uncompared;  // one sentence each
  std::vector<Reasons> notes;
};

// Buffers as they were at the end of each step; one that no event holds has not changed.
KeptComparison compare_buffers(const Timeline& timeline, const ProcessPair& both,
                               const HiddenRecords& hidden);

// The files that both processes wrote, in order: their tensors by name.
KeptComparison compare_saved(const Timeline& timeline, const ProcessPair& both,
                             const HiddenRecords& hidden);

// Tensors that outlive the step they were made in: what an operator leaves in memory that a later
// step reads before anybody writes it again (averages of weights, caches, a loss scale).
KeptComparison compare_lasting(const Timeline& timeline, const ProcessPair& both,
                               const HiddenRecords& hidden);

// A tensor that both runs made, and one of them alone keeps writing: an average of weights that the
// other never updates. What it holds as a step ends counts if the other run holds that nowhere.
std::optional<ModelDifference> lasting_of_one_run(const Timeline& timeline, const ProcessPair& both,
                                                  const HiddenRecords& hidden,
                                                  const ValueIndex& index_a,
                                                  const ValueIndex& index_b);

// Of a program without training: the results of its outermost calls. A call counts if recorded
// operators ran inside it, or it reads parameters of its own.
KeptComparison compare_results(const Timeline& timeline, const ProcessPair& both,
                               const HiddenRecords& hidden);

}  // namespace opguard
