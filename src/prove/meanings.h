// prove/meanings.h: what the meanings of operators share: element by element, choices, rows.
//
//   of_two(c, f)             f of the first two arguments' elements, broadcast as torch does
//   chosen(t, [x > 0], a, b) b + step(x) (a - b), a number that is a where x is above 0
//   mapped_or(t, {i}, f, w)  f of a token's values; throws Unprovable(w) where i is a real
//   is_value(t, i, 3)        [i = 3], by which indices that nobody knows are followed
//
// A meaning that has to know a number, as an index or a divisor, goes through known_index() or
// mapped_or(). So what it cannot follow is Unprovable in the same words.
#pragma once

#include <utility>
#include <vector>

#include "prove/operators.h"

namespace opguard::proving {

// The common beginning of meanings that work element by element.
template <typename F>  // Element(Terms&, Element)
Results of_one(const Call& c, F f) {
  return just(each(c.array(0), [&](Element x) { return f(c.terms(), x); }));
}
template <typename F>  // Element(Terms&, Element, Element)
Results of_two(const Call& c, F f) {
  return just(
      each(c.array(0), c.array(1), [&](Element x, Element y) { return f(c.terms(), x, y); }));
}
template <typename F>  // Element(Terms&, Element, Element, Element)
Results of_three(const Call& c, F f) {
  const Array all[] = {c.array(0), c.array(1), c.array(2)};
  return just(
      each(all, [&](std::span<const Element> x) { return f(c.terms(), x[0], x[1], x[2]); }));
}

// condition * a + (1 - condition) * b, by tokens where it can. Throws Unprovable where the
// condition is no truth, or where infinity stands beside a condition on reals.
Element chosen(Terms& t, Element condition, Element a, Element b);
// Of a number: whether it is not zero. A truth is its own.
Element truth_of(Terms& t, Element x);
// A table's rational function; throws Unprovable with `why` where the elements are none.
Element mapped_or(Terms& t, std::span<const Element> of,
                  const std::function<Rational(std::span<const Rational>)>& f, const char* why);
Element least(Terms& t, Element x, Element y);
Element greatest_of(Terms& t, Element x, Element y);
inline Element negative(Terms& t, Element x) { return t.scaled(x, Rational(-1)); }

Element total_of(Terms& t, std::span<const Element> of);  // 0 of none
Element mean_of(Terms& t, std::span<const Element> of);
// Over dims, all of them where there are none; keep: as extents of 1.
Array summed(Terms& t, const Array& a, const std::vector<int64_t>& dims, bool keep);
Array averaged(Terms& t, const Array& a, const std::vector<int64_t>& dims, bool keep);
// exp(x) / sum of exp, without the shift by the greatest that kernels make: it cancels in the
// quotient.
Array softmax_of(Terms& t, const Array& a, int64_t dim);
Array times(Terms& t, const Array& a, const Array& b);
Array plus(Terms& t, const Array& a, const Array& b);

// Of losses: none, mean, sum, as ATen numbers them.
enum class Reduction : int64_t { none, mean, sum };
Reduction reduction_of(const Call& c, size_t i);
Results reduced_loss(Terms& t, const Array& losses, Reduction reduction);
// The gradient of each loss: that of the mean is shared by `count` losses.
Element loss_share(Terms& t, Element gradient, size_t count, Reduction reduction);

// [index == v], which holds for some tokens.
Element is_value(Terms& t, Element index, int64_t v);
// A constant index, from the end where it is negative; none of a token's. Throws Unprovable where
// it is outside.
std::optional<int64_t> known_index(Terms& t, Element index, int64_t size);
// Throws Unprovable unless a token's index is from low up to high, without it, for all values of
// the token.
void require_within(Terms& t, Element index, int64_t low, int64_t high);
// Row-major steps of a shape: {12, 4, 1} of {2, 3, 4}.
std::vector<int64_t> steps_of(const Shape& shape);
// dim becomes the last one, or the first; its own inverse.
std::vector<size_t> swapped(size_t dims, size_t dim, bool first);

}  // namespace opguard::proving
