// align/judge/gradient_sums.h: gradients of one tensor that autograd adds in another order.
//
// Where a tensor has several readers, autograd adds up what they send back, below Python. The order
// is that in which it reaches them: that of their forwards, from the last to the first.
//
//   a  p = h.sin(); q = h.exp(); r = h.tanh()    h's gradient is (tanh' + exp') + sin'
//   b  q = h.exp(); p = h.sin(); r = h.tanh()    h's gradient is (tanh' + sin') + exp'
//
// Each of the three is the same in both runs, the sum is not. Two summands commute: there is
// nothing to be found in a sum of two.
#pragma once

#include <optional>
#include <vector>

#include "align/pair/timeline.h"
#include "align/values/value_index.h"

namespace opguard {

struct GradientOrder {
  EventRef refs[2];    // the first summand of each run that the other has elsewhere: a node
  uint64_t count = 0;  // of the summands
};

// a, b: a node or an accumulated gradient of both runs whose incoming gradient nobody made.
std::optional<GradientOrder> find_gradient_order(const Timeline& timeline, const EventRef& a,
                                                 const EventRef& b);

// The nodes whose gradients autograd added up to what this node, or this accumulated gradient,
// read: in the order in which they were added. Empty where none is known.
std::vector<EventRef> summed_by(const ProcessLog& log, const EventRef& ref);

}  // namespace opguard
