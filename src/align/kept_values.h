// align/kept_values.h: what a program keeps beside its parameters, compared: module buffers and
// what it saves to files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "align/model_values.h"

namespace opguard {

struct KeptComparison {
  bool compared = false;
  std::optional<ModelDifference> first;
  std::vector<std::string> uncompared;  // reasons, one sentence each
  std::vector<std::string> notes;
};

// Buffers as they were at the end of each step; one that no event holds has not changed.
KeptComparison compare_buffers(const Timeline& timeline, const ProcessPair& both,
                               const HiddenRecords& hidden);

// The files that both processes wrote, in order: their tensors by name.
KeptComparison compare_saved(const Timeline& timeline, const ProcessPair& both,
                             const HiddenRecords& hidden);

}  // namespace opguard
