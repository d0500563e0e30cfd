// Soft maxima, embeddings in bags, distances.
//
//   softmax(x)           exp(x_i) / sum_j exp(x_j): no shift by the greatest, which cancels
//   log_softmax(x)       x_i - log(sum_j exp(x_j))
//   bags, offsets 0 2    indices 0 and 1 are in bag 0, the others in bag 1
//
// A bag is a sum or a mean of rows. The soft maxima share the sum of exponentials, so
// log(softmax(x)) and log_softmax(x) are one element.
//
// Counterexample: a bag's greatest row, and a distance of an order other than 1 or 2, have no
// meaning here.
//
// The cost: a soft maximum of n makes n terms over one sum of n. Distances of m rows to n are m n
// sums.
#include <cmath>

#include "prove/meanings.h"

namespace opguard::proving {
namespace {

// Whether the row is to be cast first says nothing here.
Results softmax(const Call& c) {
  c.pass_over(2);
  return just(softmax_of(c.terms(), c.array(0), c.whole(1, -1)));
}
// Of a row of minus infinities zeros.
Results safe_softmax(const Call& c) {
  Terms& t = c.terms();
  c.pass_over(2, "dtype");
  return just(along(c.array(0), c.whole(1, -1), [&](auto x, auto y) {
    bool any = false;
    for (Element e : x) any |= e != t.minus_infinity();
    const Array row{{static_cast<int64_t>(x.size())}, {x.begin(), x.end()}};
    const Array soft = any ? softmax_of(t, row, 0) : Array::filled(row.shape, t.zero());
    std::copy(soft.at.begin(), soft.at.end(), y.begin());
  }));
}
// f of the rows of two arrays along dim. They are laid end to end, since along() takes one array.
// f of the rows of two arrays along dim. They are laid end to end, since along() takes one array.
Array both_along(const Array& g, const Array& y, int64_t dim,
                 const std::function<void(std::span<const Element>, std::span<const Element>,
                                          std::span<Element>)>& f) {
  // The two beside each other, along dim.
  const size_t d = dimension(dim, g.dims());
  if (g.dims() == 0) {
    Array result = g;
    f(g.at, y.at, result.at);
    return result;
  }
  const Array all[] = {g, y};
  const Array joined = concatenated(all, d);
  Array result = along(joined, dim, [&](std::span<const Element> x, std::span<Element> out) {
    const size_t half = x.size() / 2;
    f(x.first(half), x.last(half), out.first(half));
  });
  return slice(result, d, 0, g.shape[d]);
}
// y * (g - sum(g * y))
Results softmax_backward(const Call& c) {
  Terms& t = c.terms();
  return just(both_along(c.array(0), c.array(1), c.whole(2, -1), [&](auto g, auto y, auto out) {
    std::vector<Element> products;
    for (size_t i = 0; i < g.size(); ++i) products.push_back(t.multiply(g[i], y[i]));
    const Element sum = t.sum(products);
    for (size_t i = 0; i < g.size(); ++i) out[i] = t.multiply(y[i], t.subtract(g[i], sum));
  }));
}
// log(sum of exp(x)). Minus infinity adds nothing.
// log(sum of exp(x)). Minus infinity adds nothing.
Element log_sum_exp(Terms& t, std::span<const Element> x) {
  std::vector<Element> e;
  for (Element v : x) e.push_back(t.exp(v));
  return t.log(t.sum(e));
}
Results log_softmax(const Call& c) {
  Terms& t = c.terms();
  c.pass_over(2);
  return just(along(c.array(0), c.whole(1, -1), [&](auto x, auto y) {
    const Element l = log_sum_exp(t, x);
    for (size_t i = 0; i < x.size(); ++i) y[i] = t.subtract(x[i], l);
  }));
}
// g - exp(y) * sum(g)
Results log_softmax_backward(const Call& c) {
  Terms& t = c.terms();
  return just(both_along(c.array(0), c.array(1), c.whole(2, -1), [&](auto g, auto y, auto out) {
    const Element sum = t.sum(std::vector<Element>(g.begin(), g.end()));
    for (size_t i = 0; i < g.size(); ++i) out[i] = t.subtract(g[i], t.multiply(t.exp(y[i]), sum));
  }));
}
Results logsumexp(const Call& c) {
  Terms& t = c.terms();
  return just(reduce(c.array(0), c.list(1), c.flag(2, false),
                     [&](std::span<const Element> x) { return log_sum_exp(t, x); }));
}
Results cumulated_log_sum_exp(const Call& c) {
  Terms& t = c.terms();
  return just(along(c.array(0), c.whole(1, 0), [&](auto x, auto y) {
    for (size_t i = 0; i < x.size(); ++i) y[i] = log_sum_exp(t, x.first(i + 1));
  }));
}

// Nothing is drawn where nothing is dropped. The second result says which are kept: all.
Results dropout(const Call& c) {
  const bool training = c.flag(2, true);
  if (c.number(1, 0) != 0 && training)
    throw Unprovable("dropout draws random numbers; set its p to 0 for a proof");
  const Array x = c.array(0);
  return several(x, Array::filled(x.shape, c.terms().one()));
}
Results dropout_backward(const Call& c) {
  return of_three(c, [](Terms& t, Element g, Element kept, Element scale) {
    return t.multiply(g, t.multiply(kept, scale));
  });
}

// ---- Embeddings in bags: which rows are added up, or averaged, is by offsets

struct Bags {
  std::vector<size_t> of;        // each index's bag
  std::vector<int64_t> offsets;  // where each begins
  std::vector<Element> size;     // of each, padding not counted
};
enum BagMode : int64_t { kBagSum, kBagMean };
// Sum or mean, as ATen numbers them.
// Sum or mean, as ATen numbers them.
int64_t bag_mode(const Call& c, size_t i) {
  const int64_t mode = c.whole(i, kBagSum);
  if (mode != kBagSum && mode != kBagMean) throw Unprovable("a bag's greatest row");
  return mode;
}
// [index is not padding], for each of them; 1 for all where padding is negative, so there is none.
std::vector<Element> counted_in(Terms& t, const Array& index, int64_t padding) {
  std::vector<Element> counts;
  for (Element i : index.at)
    counts.push_back(padding < 0 ? t.one() : t.subtract(t.one(), is_value(t, i, padding)));
  return counts;
}
// Index i is in the last bag that begins at i or before. has_last: the last offset is an end, and
// begins no bag.
// Index i is in the last bag that begins at i or before. has_last: the last offset is an end, and
// begins no bag.
Bags bags_of(Terms& t, const Array& index, const Array& offsets, bool has_last, int64_t padding) {
  Bags bags;
  for (Element e : offsets.at) {
    const auto n = t.constant(e);
    if (!n) throw Unprovable("a bag's beginning is not known");
    bags.offsets.push_back(n->numerator());
  }
  if (has_last) bags.offsets.pop_back();
  const std::vector<Element> counts = counted_in(t, index, padding);
  std::vector<std::vector<Element>> in(bags.offsets.size());
  for (size_t i = 0; i < index.at.size(); ++i) {
    size_t bag = 0;
    while (bag + 1 < bags.offsets.size() && bags.offsets[bag + 1] <= static_cast<int64_t>(i)) ++bag;
    bags.of.push_back(bag);
    in.at(bag).push_back(counts[i]);
  }
  for (const auto& list : in) bags.size.push_back(total_of(t, list));
  return bags;
}
Array whole_numbers(Terms& t, const std::vector<size_t>& of) {
  Array a{{static_cast<int64_t>(of.size())}, {}};
  for (size_t n : of) a.at.push_back(t.rational(static_cast<int64_t>(n)));
  return a;
}
Results embedding_bag(const Call& c) {
  Terms& t = c.terms();
  const Array rows = c.array(0), index = c.array(1);
  c.pass_over(3);  // of gradients
  const int64_t mode = bag_mode(c, 4), padding = c.whole(8, -1);
  c.pass_over(5);
  const auto weights = c.array_if_given(6);
  const Bags bags = bags_of(t, index, c.array(2), c.flag(7, false), padding);
  const std::vector<Element> counts = counted_in(t, index, padding);
  const auto width = static_cast<size_t>(rows.shape[1]);
  Array result{{static_cast<int64_t>(bags.size.size()), rows.shape[1]}, {}};
  for (size_t bag = 0; bag < bags.size.size(); ++bag)
    for (size_t column = 0; column < width; ++column) {
      std::vector<Element> parts;
      for (size_t i = 0; i < index.at.size(); ++i) {
        if (bags.of[i] != bag) continue;
        const Element row = t.look_up(index.at[i], [&](int64_t v) {
          return rows.at.at(static_cast<size_t>(v) * width + column);
        });
        parts.push_back(t.multiply(counts[i], weights ? t.multiply(row, weights->at[i]) : row));
      }
      const Element sum = total_of(t, parts);
      result.at.push_back(mode == kBagMean && !parts.empty() ? t.divide(sum, bags.size[bag]) : sum);
    }
  // The places of greatest rows are nobody's business.
  Results r = several(std::move(result), whole_numbers(t, bags.of));
  r.emplace_back(Array{{static_cast<int64_t>(bags.size.size())}, bags.size});
  r.emplace_back(std::nullopt);
  if (c.node().results.size() > 1 && c.node().results[1].shape != (*r[1]).shape) r[1].reset();
  if (c.node().results.size() > 2 && c.node().results[2].shape != (*r[2]).shape) r[2].reset();
  return r;
}
// Row r gets, for each index, [index = r] times the gradient of its bag, by the bag's size where it
// is a mean.
// Row r gets, for each index, [index = r] times the gradient of its bag, divided by the bag's size
// where it is a mean.
Results embedding_bag_backward(const Call& c) {
  Terms& t = c.terms();
  const Array g = c.array(0), index = c.array(1);
  for (size_t i : {3, 4, 5}) c.pass_over(i);  // computed anew
  const int64_t count = c.whole(6, 0), mode = bag_mode(c, 8), padding = c.whole(11, -1);
  if (c.flag(7, false)) throw Unprovable("gradients scaled by how often a row is used");
  if (c.flag(9, false)) throw Unprovable("a sparse gradient");
  const auto weights = c.array_if_given(10);
  const Bags bags = bags_of(t, index, c.array(2), false, padding);
  for (Element i : index.at) require_within(t, i, 0, count);
  const auto width = static_cast<size_t>(g.shape[1]);
  Array result = Array::filled({count, g.shape[1]}, t.zero());
  for (int64_t row = 0; row < count; ++row)
    for (size_t column = 0; column < width && row != padding; ++column) {
      std::vector<Element> parts;
      for (size_t i = 0; i < index.at.size(); ++i) {
        const Element hit = is_value(t, index.at[i], row);
        if (hit == t.zero()) continue;
        Element here = g.at.at(bags.of[i] * width + column);
        if (weights) here = t.multiply(here, weights->at[i]);
        if (mode == kBagMean) here = t.divide(here, bags.size[bags.of[i]]);
        parts.push_back(t.where(hit, here, t.zero()));
      }
      result.at[static_cast<size_t>(row) * width + column] = total_of(t, parts);
    }
  return just(result);
}

// ---- Distances of each row of one to each of the other, of order 1 or 2

double known_order(double p) {
  if (p != 1 && p != 2) throw Unprovable("a distance of another order");
  return p;
}
// Calls f(left, right, at) with rows' beginnings, and the place of their distance.
template <typename F>
void pairs_of_rows(const Array& a, const Array& b, F f) {
  const int64_t m = a.shape[a.dims() - 2], n = b.shape[b.dims() - 2], width = a.shape.back();
  const int64_t batches = static_cast<int64_t>(a.at.size()) / (m * width);
  if (b.at.size() != static_cast<size_t>(batches * n * width))
    throw Unprovable("shapes do not fit");
  for (int64_t s = 0; s < batches; ++s)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j)
        f((s * m + i) * width, (s * n + j) * width, (s * m + i) * n + j);
}
Results distances(const Call& c) {
  Terms& t = c.terms();
  const Array a = c.array(0), b = c.array(1);
  const double p = known_order(c.number(2, 2));
  c.pass_over(3);  // how it is computed
  Array result{a.shape, {}};
  result.shape.back() = b.shape[b.dims() - 2];
  pairs_of_rows(a, b, [&](int64_t i, int64_t j, int64_t) {
    std::vector<Element> parts;
    for (int64_t k = 0; k < a.shape.back(); ++k) {
      const Element d =
          t.subtract(a.at[static_cast<size_t>(i + k)], b.at[static_cast<size_t>(j + k)]);
      parts.push_back(p == 2 ? t.multiply(d, d) : t.absolute(d));
    }
    const Element sum = total_of(t, parts);
    result.at.push_back(p == 2 ? t.power(sum, Rational(1, 2)) : sum);
  });
  return just(result);
}
// Of the rows of the first alone: g (a - b) / d, or g sign(a - b) of order 1. That d is not zero is
// assumed.
// Of the rows of the first alone: g (a - b) / d, or g sign(a - b) of order 1. That d is not zero is
// assumed.
Results distances_backward(const Call& c) {
  Terms& t = c.terms();
  const Array g = c.array(0), a = c.array(1), b = c.array(2), d = c.array(4);
  const double p = known_order(c.number(3, 2));
  std::vector<std::vector<Element>> parts(a.at.size());
  pairs_of_rows(a, b, [&](int64_t i, int64_t j, int64_t at) {
    const auto here = static_cast<size_t>(at);
    for (int64_t k = 0; k < a.shape.back(); ++k) {
      const auto to = static_cast<size_t>(i + k);
      const Element apart = t.subtract(a.at[to], b.at[static_cast<size_t>(j + k)]);
      const Element slope = p == 2 ? t.divide(apart, d.at[here]) : t.sign(apart);
      parts[to].push_back(t.multiply(g.at[here], slope));
    }
  });
  Array result{a.shape, {}};
  for (const auto& list : parts) result.at.push_back(total_of(t, list));
  return just(result);
}

}  // namespace

std::vector<OperatorEntry> network_operators() {
  return {{"_softmax", softmax},
          {"_safe_softmax", safe_softmax},
          {"_softmax_backward_data", softmax_backward},
          {"_log_softmax", log_softmax},
          {"_log_softmax_backward_data", log_softmax_backward},
          {"logsumexp", logsumexp},
          {"logcumsumexp", cumulated_log_sum_exp},
          {"native_dropout", dropout},
          {"native_dropout_backward", dropout_backward},
          {"_embedding_bag", embedding_bag},
          {"_embedding_bag_backward", embedding_bag_backward},
          {"_cdist_forward", distances},
          {"_cdist_backward", distances_backward}};
}

}  // namespace opguard::proving
