// align/values/kept_values.h: what a program keeps beside its parameters, compared: module buffers
// and what it saves to files.
//
//   step 7        a  bn.running_mean  9f31        b  bn.running_mean  9f31
//   step 8        a  bn.running_mean  02c7        b  bn.running_mean  5b90     differs from here on
//
// A batch norm with another momentum changes no loss of training, but it changes this. Buffers are
// recorded when they change; one that no event holds is as it was.
//
// Counterexample: a buffer that one run alone has is no difference. It is counted in a note, since
// a new version may keep more. Without training there are no parameters to judge by: then the
// results of the outermost calls stand for them (compare_results).
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

// Of a program without training: the results of its outermost calls. A call counts if recorded
// operators ran inside it, or it reads parameters of its own.
KeptComparison compare_results(const Timeline& timeline, const ProcessPair& both,
                               const HiddenRecords& hidden);

}  // namespace opguard
