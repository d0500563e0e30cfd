// align/tolerance/unfinished_gradient.h: what a program does to gradients between the backward pass
// and the optimizer, where that is what went wrong.
//
//   for p in model.parameters():
//       if not is_expert(p):
//           p.grad.div_(ranks)       the others pass through this, and this gradient does not
//       cp.sum(p.grad).div_(...)     parts of a sum: this reads them first, as if they were whole
//
// The backward pass itself made what it should: parts of a sum, or a multiple, are right there.
//
// Counterexamples: a backward pass with a value that is not the reference's; a gradient that
// nothing touches before the optimizer; one that all others share the multiple of, as by clipping.
//
// Facts: by their values, the statements that each gradient passed through in place. The cost: one
// pass over the events between the backward pass and the optimizer.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "align/tolerance/comparison.h"

namespace opguard {

struct UnfinishedGradient {
  EventRef event;
  std::string gradient;  // "layers.1.experts.up"
  std::string other;     // one that passes through it; "": this one does, as if it were whole
  double factor = 1;     // of this one, relative to the other's
};

class UnfinishedGradients {
 public:
  UnfinishedGradients(const Run& candidate, const Comparison& comparison)
      : b_(candidate), comparison_(comparison) {}

  // A multiple in the step of that tensor, which some gradients have and most have not.
  std::optional<UnfinishedGradient> scaled(const ComparedTensor& tensor) const;
  // Parts of a sum in that tensor, of a backward pass, whose module has a whole parameter.
  std::optional<UnfinishedGradient> left_in_parts(const ComparedTensor& tensor) const;

 private:
  // By name: what wrote the gradient in place, the first after the backward pass first.
  using Statements = std::map<std::string, std::vector<EventRef>>;
  Statements statements(const SlotRef& gradient) const;
  bool backward_is_right(uint32_t step) const;
  // Of this step's first <gradients>, by name.
  std::map<std::string, const ComparedTensor*> gradients(uint32_t step) const;
  bool is_whole(const std::string& parameter, const std::vector<int32_t>& ranks) const;
  uint32_t boundary(const EventRef& event) const;
  // The first statement of `other` that `own` does not pass through.
  std::optional<EventRef> missed(const std::vector<EventRef>& own,
                                 const std::vector<EventRef>& other, bool communicating) const;

  const Run& b_;
  const Comparison& comparison_;
};

}  // namespace opguard
