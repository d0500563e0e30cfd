// Which is greatest, and in what order. Of tokens that is a table. Of values that nobody knows each
// order is a case of its own (term_orders.cc). What depends on nothing unknown never comes here.
//
//   topk([a b c], 1)          the place is an unknown of three values: a table 0 1 2
//                             the value is looked up by it: a, b or c
//   max([a b], dim)           the value is max(a, b); its place only where the program reads it
//   sort of tokens i, j       a table of both: for each pair of values what sorting gives
//
// So a router's choice is proved for all orders of its logits. What one_hot, gather and scatter
// make of such a place follows.
//
// Counterexample: which of two equal values comes first. Of tokens, whose values may be equal, it
// is Unprovable where no operator says it. Of reals that none are equal is assumed, and told.
//
// The cost: n orders of a row of n where one place is wanted, n! where all are.
#include <algorithm>
#include <numeric>

#include "prove/meanings.h"

namespace opguard::proving {
namespace {

using Values = std::span<const Rational>;

bool below(const Rational& a, const Rational& b) { return (a - b).numerator() < 0; }
// The places of the values in order. Of equal ones the first comes first, where that is said.
std::vector<size_t> places_in_order(Values v, bool descending, bool stable) {
  std::vector<size_t> places(v.size());
  std::iota(places.begin(), places.end(), size_t{0});
  std::stable_sort(places.begin(), places.end(), [&](size_t i, size_t j) {
    return descending ? below(v[j], v[i]) : below(v[i], v[j]);
  });
  for (size_t i = 1; i < places.size() && !stable; ++i)
    if (v[places[i]] == v[places[i - 1]])
      throw Unprovable("which of two equal values comes first is not said");
  return places;
}
// The places of the first `count` of values that nobody knows. Ascending order is the descending
// one from its end, where the whole row is wanted: then both have one unknown. Else it is that of
// the negatives.
std::vector<Element> places_of_values(Terms& t, std::span<const Element> row, size_t count,
                                      bool descending) {
  if (descending) return t.places_in_order(row, count);
  if (count >= row.size()) {
    std::vector<Element> places = t.places_in_order(row, row.size());
    std::reverse(places.begin(), places.end());
    return places;
  }
  std::vector<Element> negatives;
  for (Element e : row) negatives.push_back(negative(t, e));
  return t.places_in_order(negatives, count);
}
// The elements of `a` at places along a dimension.
Array taken_along(Terms& t, const Array& a, const Array& places, size_t dim) {
  const std::vector<size_t> order = swapped(a.dims(), dim, false);
  const Array rows = permuted(a, order), where = permuted(places, order);
  const auto length = static_cast<size_t>(rows.shape.back());
  const auto count = static_cast<size_t>(where.shape.back());
  Array result{where.shape, {}};
  for (size_t n = 0; n < where.at.size(); ++n)
    result.at.push_back(t.look_up(where.at[n], [&](int64_t v) {
      return rows.at[n / count * length + static_cast<size_t>(v)];
    }));
  return permuted(result, order);
}
// The first `count` in order: values and places.
Results ordered(const Call& c, int64_t dim, bool descending, bool stable, int64_t count) {
  Terms& t = c.terms();
  const Array a = c.array(0);
  if (a.dims() == 0) return several(a, Array::scalar(t.zero()));
  const size_t d = dimension(dim, a.dims());
  const bool tables =
      std::all_of(a.at.begin(), a.at.end(), [&](Element e) { return t.is_table(e); });
  if (!tables) {
    Array places = along(a, dim, [&](std::span<const Element> x, std::span<Element> y) {
      const auto in_order = places_of_values(t, x, static_cast<size_t>(count), descending);
      std::copy(in_order.begin(), in_order.end(), y.begin());
    });
    places = slice(places, d, 0, std::min(count, a.shape[d]));
    return several(taken_along(t, a, places, d), places);
  }
  const auto by_place = [&](bool of_values) {
    Array all = along(a, dim, [&](std::span<const Element> x, std::span<Element> y) {
      for (size_t i = 0; i < y.size() && i < static_cast<size_t>(count); ++i)
        y[i] = mapped_or(
            t, x,
            [&](Values v) {
              const size_t at = places_in_order(v, descending, stable)[i];
              return of_values ? v[at] : Rational(static_cast<int64_t>(at));
            },
            "an order depends on values");
    });
    return slice(all, d, 0, std::min(count, a.shape[d]));
  };
  return several(by_place(true), by_place(false));
}
// How many there are along dim: a sort takes all.
// How many there are along dim: a sort takes all.
int64_t extent(const Call& c, int64_t dim) {
  const Shape shape = c.tensor(0).shape;
  return shape.empty() ? 1 : shape[dimension(dim, shape.size())];
}
Results sort(const Call& c) {
  const int64_t dim = c.whole(1, -1);
  return ordered(c, dim, c.flag(2, false), false, extent(c, dim));
}
Results stable_sort(const Call& c) {
  const int64_t dim = c.whole(9, -1, "dim");
  return ordered(c, dim, c.flag(9, false, "descending"), c.flag(9, false, "stable"),
                 extent(c, dim));
}
Results topk(const Call& c) {
  if (!c.flag(4, true)) throw Unprovable("the greatest in no order");
  return ordered(c, c.whole(2, -1), c.flag(3, true), false, c.whole(1, 1));
}
// The place of the greatest of a row, or of the least. Where tokens may make two extremes equal it
// is Unprovable.
Element place_of_extreme(Terms& t, std::span<const Element> row, bool greatest) {
  const auto mapped = t.map(
      [&](Values v) {
        const auto places = places_in_order(v, greatest, true);
        if (places.size() > 1 && v[places[0]] == v[places[1]])
          throw Unprovable("which of two equal values is meant is not said");
        return Rational(static_cast<int64_t>(places[0]));
      },
      row);
  return mapped ? *mapped : places_of_values(t, row, 1, greatest)[0];
}
template <bool kGreatest>
Results extreme_place(const Call& c) {
  Terms& t = c.terms();
  return just(reduce(c.array(0), c.list(1), c.flag(2, false), [&](std::span<const Element> row) {
    return place_of_extreme(t, row, kGreatest);
  }));
}
// The extreme and its place, where anybody asks for that.
template <bool kGreatest>
Results extreme_along(const Call& c) {
  Terms& t = c.terms();
  const Array a = c.array(0);
  const std::vector<int64_t> dims = c.list(1);
  const bool keep = c.flag(2, false);
  Results r = just(reduce(a, dims, keep, [&](std::span<const Element> row) {
    Element e = row[0];
    for (Element x : row.subspan(1)) e = kGreatest ? e : least(t, e, x);
    return kGreatest ? t.maximum(row) : e;
  }));
  const std::vector<Tensor>& results = c.node().results;
  if (results.size() < 2 || !c.rank().is_read(results[1].storage)) {
    r.emplace_back(std::nullopt);
    return r;
  }
  r.emplace_back(reduce(a, dims, keep, [&](std::span<const Element> row) {
    return place_of_extreme(t, row, kGreatest);
  }));
  return r;
}

// How many bounds are below: [b < x], or [b <= x] from the right.
Element bounds_below(Terms& t, std::span<const Element> bounds, Element x, bool right) {
  std::vector<Element> truths;
  for (Element b : bounds)
    truths.push_back(right ? t.subtract(t.one(), t.less(x, b)) : t.less(b, x));
  return total_of(t, truths);
}
Results bucketized(const Call& c) {
  const Array bounds = c.array(1);
  c.pass_over(2, "out_int32");
  const bool right = c.flag(3, false, "right");
  return of_one(c, [&](Terms& t, Element x) { return bounds_below(t, bounds.at, x, right); });
}
// Bounds are one row for all, or a row for each row of x.
// Bounds are one row for all, or a row for each row of x.
Results searched(const Call& c) {
  Terms& t = c.terms();
  const Array sorted = c.array(0), x = c.array(1);
  c.pass_over(2, "out_int32");
  const std::string side = c.text(4, "", "side");
  const bool right = c.flag(3, false, "right") || side == "right";
  if (c.given(5, "sorter")) throw Unprovable("bounds in another order");
  Array result{x.shape, {}};
  const size_t length = sorted.shape.empty() ? 0 : static_cast<size_t>(sorted.shape.back());
  const bool shared = sorted.dims() == 1;
  const size_t width = shared || x.shape.empty() ? 1 : static_cast<size_t>(x.shape.back());
  for (size_t n = 0; n < x.at.size(); ++n)
    result.at.push_back(bounds_below(
        t, std::span(sorted.at).subspan(shared ? 0 : n / width * length, length), x.at[n], right));
  return just(result);
}
// 1 - (1 - [x = a]) (1 - [x = b]) ...
// 1 - (1 - [x = a]) (1 - [x = b]) ...
Results is_in(const Call& c) {
  const Array among = c.array(1);
  c.pass_over(2, "assume_unique");
  const bool inverted = c.flag(3, false, "invert");
  return of_one(c, [&](Terms& t, Element x) {
    Element outside = t.one();
    for (Element e : among.at) outside = t.multiply(outside, t.subtract(t.one(), t.equal(x, e)));
    return inverted ? outside : t.subtract(t.one(), outside);
  });
}
// [token == class], for each class.
Results one_hot(const Call& c) {
  Terms& t = c.terms();
  const Array a = c.array(0);
  const int64_t classes = c.whole(1, -1);
  if (classes < 0) throw Unprovable("a number of classes that depends on values");
  Array result{a.shape, {}};
  result.shape.push_back(classes);
  for (Element e : a.at) require_within(t, e, 0, classes);
  for (Element e : a.at)
    for (int64_t v = 0; v < classes; ++v) result.at.push_back(is_value(t, e, v));
  return just(result);
}

}  // namespace

std::vector<OperatorEntry> ordering_operators() {
  return {{"sort", sort},
          {"sort.stable", stable_sort},
          {"topk", topk},
          {"argmax", extreme_place<true>},
          {"argmin", extreme_place<false>},
          {"max.dim", extreme_along<true>},
          {"min.dim", extreme_along<false>},
          {"bucketize", bucketized},
          {"searchsorted", searched},
          {"isin", is_in},
          {"one_hot", one_hot}};
}

}  // namespace opguard::proving
