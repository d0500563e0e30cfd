#include "prove/meanings.h"

#include <algorithm>
#include <numeric>

namespace opguard::proving {

// By cases where tokens decide, or nothing unknown. On reals it is a sum, and infinity times 0 has
// no meaning.
Element chosen(Terms& t, Element condition, Element a, Element b) {
  if (a == b) return a;
  if (t.is_table(condition)) return t.where(condition, a, b);
  if (a == t.minus_infinity() || b == t.minus_infinity())
    throw Unprovable("minus infinity where a condition on values holds");
  // Else it is no condition: a number that would weigh the two.
  if (!t.is_truth(condition)) throw Unprovable("a choice depends on a value");
  return t.add(b, t.multiply(condition, t.subtract(a, b)));
}

Element truth_of(Terms& t, Element x) {
  return t.is_truth(x) ? x : t.subtract(t.one(), t.equal(x, t.zero()));
}

Element mapped_or(Terms& t, std::span<const Element> of,
                  const std::function<Rational(std::span<const Rational>)>& f, const char* why) {
  const auto found = t.map(f, of);
  if (!found) throw Unprovable(why);
  return *found;
}

Element greatest_of(Terms& t, Element x, Element y) {
  const Element both[] = {x, y};
  return t.maximum(both);
}
// By the maximum of what is negated, so that min and max have one form. Infinity cannot be negated.
Element least(Terms& t, Element x, Element y) {
  if (x == t.minus_infinity() || y == t.minus_infinity()) return t.minus_infinity();
  return negative(t, greatest_of(t, negative(t, x), negative(t, y)));
}

Element total_of(Terms& t, std::span<const Element> of) {
  return of.empty() ? t.zero() : t.sum(of);
}
// A sum times 1 / n: a mean and a scaled sum are one element.
Element mean_of(Terms& t, std::span<const Element> of) {
  if (of.empty()) throw Unprovable("a mean of nothing");
  return t.scaled(t.sum(of), Rational(1, static_cast<int64_t>(of.size())));
}
Array summed(Terms& t, const Array& a, const std::vector<int64_t>& dims, bool keep) {
  return reduce(a, dims, keep, [&](std::span<const Element> x) { return total_of(t, x); });
}
Array averaged(Terms& t, const Array& a, const std::vector<int64_t>& dims, bool keep) {
  return reduce(a, dims, keep, [&](std::span<const Element> x) { return mean_of(t, x); });
}
Array softmax_of(Terms& t, const Array& a, int64_t dim) {
  return along(a, dim, [&](std::span<const Element> x, std::span<Element> y) {
    std::vector<Element> e;
    for (Element v : x) e.push_back(t.exp(v));
    const Element inverse = t.power(t.sum(e), Rational(-1));
    for (size_t i = 0; i < x.size(); ++i) y[i] = t.multiply(e[i], inverse);
  });
}
Array times(Terms& t, const Array& a, const Array& b) {
  return each(a, b, [&](Element x, Element y) { return t.multiply(x, y); });
}
Array plus(Terms& t, const Array& a, const Array& b) {
  return each(a, b, [&](Element x, Element y) { return t.add(x, y); });
}

Reduction reduction_of(const Call& c, size_t i) {
  const int64_t found = c.whole(i, 1);
  if (found < 0 || found > 2) throw Unprovable("a reduction that is not known");
  return static_cast<Reduction>(found);
}
Results reduced_loss(Terms& t, const Array& losses, Reduction reduction) {
  if (reduction == Reduction::none) return just(losses);
  return just(
      Array::scalar(reduction == Reduction::mean ? mean_of(t, losses.at) : total_of(t, losses.at)));
}
Element loss_share(Terms& t, Element gradient, size_t count, Reduction reduction) {
  if (reduction != Reduction::mean) return gradient;
  return t.scaled(gradient, Rational(1, static_cast<int64_t>(count)));
}

// A table. Of i // 2, where i is a token, [i // 2 = 1] holds for 2 and for 3.
Element is_value(Terms& t, Element index, int64_t v) {
  const Element only[] = {index};
  return mapped_or(
      t, only, [v](std::span<const Rational> x) { return Rational(x[0] == Rational(v)); },
      "an index is computed from values");
}

std::optional<int64_t> known_index(Terms& t, Element index, int64_t size) {
  const auto n = t.constant(index);
  if (!n) return {};
  const int64_t v = n->numerator() < 0 ? n->numerator() + size : n->numerator();
  if (!n->whole() || v < 0 || v >= size) throw Unprovable("an index outside its dimension");
  return v;
}

void require_within(Terms& t, Element index, int64_t low, int64_t high) {
  const Element only[] = {index};
  mapped_or(
      t, only,
      [&](std::span<const Rational> v) {
        if (!v[0].whole() || v[0].numerator() < low || v[0].numerator() >= high)
          throw Unprovable("an index outside its dimension");
        return v[0];
      },
      "an index is computed from values");
}

std::vector<int64_t> steps_of(const Shape& shape) {
  std::vector<int64_t> steps(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) steps[d - 1] = steps[d] * shape[d];
  return steps;
}

// The two change places, all others stay. So permuting twice leads back.
std::vector<size_t> swapped(size_t dims, size_t dim, bool first) {
  std::vector<size_t> order(dims);
  std::iota(order.begin(), order.end(), size_t{0});
  if (dims > 0) std::swap(order[dim], first ? order.front() : order.back());
  return order;
}

}  // namespace opguard::proving
