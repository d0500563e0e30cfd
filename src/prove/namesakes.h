// prove/namesakes.h: the model's elements by what they are at a few points, for a plan that comes
// to them by another way.
//
//   model   p_k (dp_k - sum_j p_j dp_j)         a soft maximum's gradient
//   plan    p_k (dp_k - sum_d g_d o_d)          flash attention's, by rows of the output
//
// A plan's sum that has the numbers of one of the model's is compared with it by
// Terms::same_by_products(). Where they are equal, the plan goes on with the model's. So each
// difference is decided where it arises, over few terms; behind it ids are equal again.
//
// Counterexample: numbers alone never make two elements one. Those that agree at all points and
// cannot be proved equal stay two.
//
// The cost: each element of the model at kPoints points, once; then a look-up for each new element
// of the plan.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "prove/evaluate.h"

namespace opguard::proving {

class Namesakes {
 public:
  // Elements below `model_end` are the model's.
  Namesakes(Terms& terms, Element model_end);
  // e, with what is equal to an element of the model's replaced by it, times a fraction. Named sums
  // within it are looked at first, the innermost ones before. Kept: each element is asked about
  // once.
  Element of(Element e);

 private:
  static constexpr size_t kPoints = 6;
  using Values = std::array<long double, kPoints>;

  std::optional<Values> values_of(Element e);
  // The model's element and what it is multiplied with.
  std::optional<std::pair<Element, Rational>> equal_to(Element e);
  Element with_known_sums(Element e);

  Terms& terms_;
  Element model_end_;
  std::vector<Point> points_;
  std::multimap<long double, Element> by_ratio_;  // of the values at the first two points
  std::unordered_map<Element, Element> found_;
};

}  // namespace opguard::proving
