// align/tolerance/cut_gradient.h: where a gradient that lacks a summand was cut off.
//
//   scale = rsqrt(x.detach().pow(2).mean(-1))    reads x, and no gradient comes back through it
//   x * scale                                    the only reader of x that hands a gradient back
//
// Autograd adds up what the readers of a value hand back. The sum is another one where one of them
// hands nothing. That reader is named, and not who is given the sum.
//
// Counterexample: a reader that the reference has too, or whose result comes to nothing, as of what
// is printed.
//
// The cost: the readers of a few values, and what they make, up to some hundred operators.
#pragma once

#include <vector>

#include "align/tolerance/comparison.h"
#include "align/tolerance/flow_back.h"
#include "align/tolerance/forward_readers.h"

namespace opguard {

class CutGradients {
 public:
  CutGradients(const Run& candidate, const Comparison& comparison)
      : run_(candidate), comparison_(comparison), readers_(candidate) {}

  // Of a gradient that is not the reference's, operators of the forward pass that cut it off. They
  // read what it is the gradient of, or what was made of that on the way. In their order.
  std::vector<EventRef> of(const ToleranceOrigin& origin) const;

 private:
  // Whose gradient it is: values of the candidate.
  std::vector<ValueKey> values_of(const ToleranceOrigin& origin, int32_t process) const;
  bool cuts(const EventRef& reader, const ValueKey& key) const;
  bool comes_to_graph(const EventRef& reader) const;

  const Run& run_;
  const Comparison& comparison_;
  ForwardReaders readers_;
};

}  // namespace opguard
