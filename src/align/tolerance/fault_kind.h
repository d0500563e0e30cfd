// align/tolerance/fault_kind.h: in which way a tensor of the candidate is not the reference's.
//
//   missing_reduce   the ranks hold parts of a sum
//   scale            a multiple
//   omits            a piece is held by no rank; or no update writes a parameter (missed_update.h)
//   layout           the reference's elements, at other places
//   stale            the reference's value of another layer, micro-batch or step; or what a
//                    backward pass reads was overwritten
//   replicas         some ranks have the reference's value, others not
//   precision        off by rounding to a type that the reference does not use
//   value            none of these
//
//   declared         a library says that ranks hold it otherwise (declaration.h)
//
// Counterexample: `mapping` is no tensor's: no rank has a layer's parameters (judge_tolerance.cc).
//
// The cost: for `stale` a distance to each tensor of the same operator.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "align/judge/verdict.h"
#include "align/tolerance/comparison.h"
#include "align/tolerance/named_operator.h"

namespace opguard {

class FaultKinds {
 public:
  FaultKinds(const Run& reference, const Run& candidate, const Comparison& comparison)
      : a_(reference), b_(candidate), comparison_(comparison), reader_a_(a_), reader_b_(b_) {}

  // Of one of comparison.tensors that is not equal, and the operator that is named for it; `why`
  // gets what tells it.
  PivotKind of(const ComparedTensor& tensor, const NamedOperator& named, Reasons& why);
  // What is declared of it, and what the ranks hold.
  Reasons declared(const DeclaredTensor& declared) const;

 private:
  const ComparedTensor* stale_for(const ComparedTensor& tensor);
  bool leaves_as_it_was(const ComparedTensor& tensor) const;
  bool is_moved(const ComparedTensor& tensor, const NamedOperator& named) const;
  bool is_narrow(const ComparedTensor& tensor, const NamedOperator& named, Reasons& why);
  bool rounds(const NamedOperator& named, double coarsest) const;

  const Run& a_;
  const Run& b_;
  const Comparison& comparison_;
  SketchReader reader_a_, reader_b_;
  using Form = std::tuple<uint32_t, uint32_t, uint32_t>;  // boundary, node, slot
  std::map<Form, std::vector<uint32_t>> same_form_;
};

}  // namespace opguard
