// align/judge/behind.h: what lies behind the candidates that a walk has named.
//
//   named                                          behind it
//   `torch.tensor(rows)`, an input nobody made     `logits.argmax()`, whose result went into a list
//   a gradient that autograd summed                the summand that stands in another place
//   `dropout` drew other numbers                   the `torch.rand(3)` that moved the generator
//   `x.float()`, which one run alone has           what differs if that is harmless
//
// The look_ functions put one more candidate in front, behind_named adds some at the end. At most
// kMostCandidates are kept.
#pragma once

#include <vector>

#include "align/judge/naming.h"
#include "align/judge/walk_back.h"
#include "align/values/model_values.h"

namespace opguard {

// The pivot's input came out of code without operators (numpy, Python lists). If right before it a
// differing value went into such code, and a matched operator began that difference, that one is
// the pivot.
std::vector<Pivot> look_behind_hole(const Evidence& evidence, const Blame& blame,
                                    std::vector<Pivot> candidates);

// A sum that autograd made of the same gradients in another order: the first that stands elsewhere.
std::vector<Pivot> look_behind_sum(const Evidence& evidence, std::vector<Pivot> candidates);

// An operator that draws other numbers from equal inputs shows that the generator was moved before
// it.
std::vector<Pivot> look_behind_draw(const Evidence& evidence, const Blame& blame,
                                    std::vector<Pivot> candidates);

// Should the operators of one run alone that are named so far be harmless, the cause lies behind
// them. leads: those that were named.
std::vector<Pivot> behind_named(const Evidence& evidence, const Blame& blame,
                                const ModelDifference& difference, const std::vector<Lead>& leads,
                                std::vector<Pivot> candidates);

// Had the generators parted before a random operator, or before data in another order? In `why`.
void tell_random_states(const Evidence& evidence, Pivot& pivot);

// What rules hide reaches a model value: that is no cause to name, and not to be passed over. The
// first operator that reads it stands for it, or the model value itself.
void tell_hidden(const Evidence& evidence, const Walk& walk, const ModelDifference& difference,
                 Verdict& verdict);

}  // namespace opguard
