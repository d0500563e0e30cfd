// align/tolerance/judged_values.h: what a candidate is judged by, and which of it is not the
// reference's.
//
//   loss                 of each micro-batch
//   <gradients>          before they are clipped
//   <parameters>         as the next step reads them; behind the last step, as the optimizer left
//   a gradients' norm    only where it is a whole multiple: clipping hides that from the update
//
// Counterexample: an inner value. A rank's part of a masked embedding is nobody's, and right.
//
// The cost: one pass over what was compared; one over the reference's events for the norms.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "align/judge/reason.h"
#include "align/tolerance/comparison.h"

namespace opguard {

// Parts of a gradient's sum are added up by the step itself, as of DTensor's Partial: the parameter
// is the reference's behind it.
bool is_summed_later(const Comparison& comparison, const ComparedTensor& tensor);

class JudgedValues {
 public:
  JudgedValues(const Run& reference, const Comparison& comparison);

  // Numbers of Comparison::tensors, of the first step in which there are some. A loss may be any
  // multiple, as programs scale it.
  std::vector<uint32_t> sinks() const;
  // Results of operators in a step's forward passes that are not the reference's, of a form that
  // some placement has.
  std::vector<uint32_t> forward_of(uint32_t step) const;
  // Most weights at the start are nobody's: these runs did not begin alike. Else no reason.
  Reasons unlike_weights() const;
  // Gradients that rounding to the candidate's narrower type moves as far as they are off, and too
  // far for more to be said. No reason: there are none.
  Reasons drowned() const;
  // What would have to agree, and could not be looked at: without it nothing is equivalent.
  Reasons left_unjudged() const;
  bool empty() const;

  bool is_judged_by(const SketchedTensor& tensor) const;

 private:
  const std::string& boundary(const SketchedTensor& tensor) const {
    return comparison_.texts.text(tensor.activity.boundary);
  }
  const std::string& slot(const SketchedTensor& tensor) const {
    return comparison_.texts.text(tensor.slot);
  }
  bool is_drowned(const ComparedTensor& tensor) const;
  // A parameter that has no gradient in any step.
  bool is_frozen(const std::string& slot) const;
  bool is_last_parameter(const SketchedTensor& tensor) const;
  bool is_first_weight(const SketchedTensor& tensor) const;
  // A step, and in it what lies between two `<parameters>`: a program with an optimizer of its own
  // is in one step all the time.
  struct Round {
    uint32_t step = 0, number = 0;
    auto operator<=>(const Round&) const = default;
  };
  Round round_of(const SketchedTensor& tensor) const;
  std::vector<uint32_t> uneven_losses(const Round& round) const;

  const Run& reference_;
  const Comparison& comparison_;
  uint32_t first_step_ = kNone, last_step_ = 0;  // with `<parameters>`
  std::map<uint32_t, std::set<uint32_t>>
      begins_;  // by step: `<parameters>`, events of the reference
};

}  // namespace opguard
