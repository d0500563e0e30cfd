// prove/familiar.h: what the logical model held: its elements, in which order, with which factors.
//
// The plan is looked at by it once it is known to be wrong. A tensor of the model's own elements in
// an order that the model never had them in was put together wrongly. An element that is the
// model's times a number that the model never has there was scaled wrongly.
//
//   the model held [a b c d]
//   [c d a b]      misplaced: in no tensor of the model's does d come before a
//   [a c]          not: a comes before c, with one left out, as a shard leaves some out
//   2 s, where the model has s alone     whole_with(2 s, 2)
//
// The cost: for each element of each different tensor of the model, its tensor and its place, 8
// bytes.
#pragma once

#include <set>
#include <vector>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "prove/history.h"

namespace opguard::proving {

class Familiar {
 public:
  // All that the model read and wrote.
  Familiar(Terms& terms, const History& model);

  bool holds(Element e) const { return places_.contains(e); }
  // Whether neighbours in it, along some dimension, are the model's elements, and no tensor of the
  // model's has them in that order. Counterexample: every second row keeps the order. Rationals
  // have no place of their own, and are passed over.
  bool misplaced(const Array& array) const;
  // Whether the element is one of the model's times `factor`, and is none of the model's.
  bool whole_with(Element e, const Rational& factor) const;
  // The same of each of its parts: it may be a part of a sum. Then one rank's share counts too. One
  // part at least has to be new with that factor; else the model has all of them anyway.
  bool carries(Element e, const Rational& factor) const;

 private:
  struct Place {
    uint32_t tensor, at;
  };
  using Factors = llvm::SmallVector<Rational, 2>;

  bool in_order(Element a, Element b) const;
  void add(const Array& array);

  Terms& terms_;
  std::set<std::vector<Element>> tensors_;
  llvm::DenseMap<Element, llvm::SmallVector<Place, 4>> places_;
  llvm::DenseMap<Element, Factors> of_sums_;  // by primitive()
  llvm::DenseMap<Monomial, Factors> of_monomials_;
};

}  // namespace opguard::proving
