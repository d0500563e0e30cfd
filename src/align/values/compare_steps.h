// align/values/compare_steps.h: the optimizers' steps of two processes: parameters, gradients and
// state, in the same pieces or in others.
//
//   a   two parameters of 6 and 4 elements          b   one flat buffer of 10, or 12 with padding
//       digests 71 and 30                               digest 101: the same elements
//
// Within equal shapes values are compared by name or as sets. What lies in other pieces is compared
// by its layout-free digests, which add up over pieces (elements.h).
//
// Counterexample: a permuted buffer has the same digest and is called the same elements. Where it
// is read, the values differ, and the walk begins there. Nothing is compared behind the first step
// that differs.
#pragma once

#include <optional>
#include <unordered_set>
#include <vector>

#include "align/values/elements.h"
#include "align/values/kept_values.h"

namespace opguard {

// The same number of tensors of each dtype, device and shape.
bool alike(const Timeline& timeline, const ModelSet& a, const ModelSet& b);

// The slots of each set whose value the other set does not have; none: the sets are equal.
std::optional<ModelDifference> compare_sets(const Timeline& timeline, const ModelSet& a,
                                            const ModelSet& b, ReasonKind why);

// A run as this comparison reads it.
struct SteppingRun {
  const ValueIndex& index;
  const std::vector<ModelMoments>& moments;  // by process
  RunElements& elements;
};

struct StepComparison : KeptComparison {
  // By side: values that together are the same elements as the other run's, in other pieces.
  std::unordered_set<ValueKey, ValueKeyHash> same_elements[2];
};

// Up to the first step that differs. What lies in other pieces is compared by its elements
// (elements.h); what that cannot tell is `uncompared`, with the reason.
StepComparison compare_steps(const Timeline& timeline, const ProcessPair& both,
                             const SteppingRun& a, const SteppingRun& b);

}  // namespace opguard
