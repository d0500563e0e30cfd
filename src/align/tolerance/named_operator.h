// align/tolerance/named_operator.h: which operator of the candidate is named for a tensor at which
// it leaves the reference.
//
//   the tensor is beyond, and only the candidate has an operator behind what is known: that one
//   parts of a sum are read by one that only the candidate has: that one, which adds nothing up
//   a value came from another rank as it was there, and is not what belongs here: the exchange
//   ranks' gradients are summed to a multiple, and then divided by 1: the division
//   a gradient lacks a summand: what cut it off
//   a backward pass reads what was overwritten since its forward pass: what wrote it
//   else what made the tensor; of a gradient without one, the backward pass that added to it
//
// Counterexamples: an operator that both have, between what is known and the tensor. It did there
// as it should. What writes over an operator's input in the reference too, as `x += y`, does no
// harm.
//
// The cost: one pass over the reference's events; those behind one collective, for a multiple that
// it made.
#pragma once

#include <map>
#include <set>
#include <string>

#include "align/tolerance/comparison.h"
#include "align/tolerance/cut_gradient.h"
#include "align/tolerance/flow_back.h"
#include "align/values/value_index.h"

namespace opguard {

struct NamedOperator {
  EventRef event;
  bool only_b = false;      // the reference does not have it
  bool cuts = false;        // no gradient comes back through it
  bool overwrites = false;  // memory that a backward pass was to find as its forward pass left it
};

class NamedOperators {
 public:
  NamedOperators(const Run& reference, const Run& candidate, const Comparison& comparison);

  NamedOperator of(const ToleranceOrigin& origin) const;
  // Of a gradient that lacks a summand: what cut that off, and does not in the reference. Its event
  // is no event if nothing did.
  NamedOperator cut(const ToleranceOrigin& origin) const;
  // Of the candidate: an operator whose line is known.
  bool has_place(const EventRef& ref) const;

 private:
  // What adds to a parameter's gradient, in a backward pass whose line is known.
  bool accumulates_at_a_place(const EventRef& ref) const;
  // An operator that communicates nothing, and that the reference does not have in that module and
  // pass.
  bool is_only_b(const EventRef& ref) const;
  // What wrote over an input of a node's forward operator before the node ran, and does not in the
  // reference; {} for nothing.
  EventRef overwrites(const EventRef& node, const EventRef& reference_node) const;
  // Ranks' values add up to a multiple. Of the operators that multiply it by a number the first
  // one was to take that back; {} for none.
  EventRef divides(const EventRef& sum, const ComparedTensor& tensor) const;

  const Run& reference_;
  const Run& run_;
  const Comparison& comparison_;
  CutGradients cuts_;
  std::map<std::string, std::set<std::string>> ran_in_a_;  // by operator and pass: modules
};

}  // namespace opguard
