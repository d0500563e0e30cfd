// align/values/model_values.h: what a run is judged by: docs/design/judgement.md, "Model values".
//
// Losses, gradients where an optimizer reads them, parameters and optimizer state after a step,
// module buffers, what is saved, numbers handed to Python. `identical` says that all of these
// agree.
#pragma once

#include <optional>
#include <unordered_set>
#include <vector>

#include "align/judge/reason.h"
#include "align/pair/timeline.h"
#include "align/rules/hidden.h"
#include "align/values/value_index.h"

namespace opguard {

// The first model value that differs: the slots on each side whose value the other side's lacks.
struct ModelDifference {
  std::vector<SlotRef> slots[2];
  Position position;
  Reason why;  // "the loss differs"
  // The values have the same names and other digests in one shape: no operator makes that, one of
  // the logs is not what was written.
  bool same_names = false;
  int longer = -1;  // the side that goes on where the other has ended
  // What each run alone hands to Python in the place of the other: `print(loss.item())` and
  // `print(norm.item())`.
  EventRef instead[2] = {};
};

struct ModelComparison {
  bool compared = false;  // false: the runs hold no model values, or rules hide them all
  std::optional<ModelDifference> first;
  std::vector<ModelDifference> ranks;  // the first of each pair of processes that has one
  std::vector<Reasons> notes;          // what one run alone has
  // Why the runs are not known to agree though nothing compared differs, one sentence each.
  std::vector<Reasons> uncompared;
  // By side: values of an optimizer's step that together are the same elements as the other run's,
  // in other pieces. No one of them is held there, and none is news.
  std::unordered_set<ValueKey, ValueKeyHash> same_elements[2];
};

// Model values in order, per rank, but for those that rules hide: docs/design/judgement.md, "Model
// values".
ModelComparison compare_model_values(const ValueIndex& a, const ValueIndex& b,
                                     const Timeline& timeline, const HiddenRecords& hidden);

// The pairs that differ and are no state of a generator, in order: in runs whose model values
// agree, those that reach none of them.
std::vector<Pair> unequal_pairs(const Run& a, const Alignment& alignment);

// A tensor's values handed to Python: `loss.item()`, `float(norm)`, `f"{x:.3f}"`, `x.numpy()`.
bool reports_number(const ProcessLog& log, const Event& event);

}  // namespace opguard
