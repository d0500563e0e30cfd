// Sums, means, variances, norms, and what is cumulated.
//
//   mean([a b])             1/2 a + 1/2 b: a scaled sum, as a program may write it by hand
//   var([a b]), of a sample ((a - m)^2 + (b - m)^2) / 1, with m the mean
//   amax([a b c])           max(a, b, c), of any order of its arguments
//   any([p q])              1 - (1 - p) (1 - q), where p and q are truths
//
// Counterexample: nansum is sum, since reals are numbers. A variance of one number, by n - 1, has
// no meaning.
#include <algorithm>
#include <cmath>

#include "prove/meanings.h"

namespace opguard::proving {
namespace {

using Row = std::span<const Element>;

// Dimensions from argument 1 on, and whether they stay.
Results over_dims(const Call& c, const std::function<Element(Row)>& f) {
  return just(reduce(c.array(0), c.list(1, "dim"), c.flag(2, false, "keepdim"), f));
}
Results sum(const Call& c) {
  return over_dims(c, [&](Row x) { return total_of(c.terms(), x); });
}
Results mean(const Call& c) {
  return over_dims(c, [&](Row x) { return mean_of(c.terms(), x); });
}
// sum((x - mean)^2) / (n - correction)
Array variance(const Call& c) {
  Terms& t = c.terms();
  const auto correction = rational_of(c.number(2, 1, "correction"));
  if (!correction) throw Unprovable("a correction of many digits");
  return reduce(c.array(0), c.list(1, "dim"), c.flag(3, false, "keepdim"), [&](Row x) {
    const Rational count = Rational(static_cast<int64_t>(x.size())) - *correction;
    if (count.numerator() <= 0) throw Unprovable("a variance of one number");
    const Element middle = mean_of(t, x);
    std::vector<Element> squares;
    for (Element e : x) squares.push_back(t.power(t.subtract(e, middle), Rational(2)));
    return t.scaled(t.sum(squares), Rational(1) / count);
  });
}
Array deviation(const Call& c) {
  return each(variance(c), [&](Element e) { return c.terms().power(e, Rational(1, 2)); });
}
Array mean_beside(const Call& c) {
  return averaged(c.terms(), c.array(0), c.list(1, "dim"), c.flag(3, false, "keepdim"));
}
Results var(const Call& c) { return just(variance(c)); }
Results var_mean(const Call& c) { return several(variance(c), mean_beside(c)); }
Results standard_deviation(const Call& c) { return just(deviation(c)); }
Results std_mean(const Call& c) { return several(deviation(c), mean_beside(c)); }

Element greatest_in(Terms& t, Row x) {
  if (x.empty()) throw Unprovable("the greatest of nothing");
  return t.maximum(x);
}
// Minus infinity is the least, and cannot be negated.
// Minus infinity is the least, and cannot be negated.
Element least_in(Terms& t, Row x) {
  std::vector<Element> negated;
  for (Element e : x) {
    if (e == t.minus_infinity()) return e;
    negated.push_back(negative(t, e));
  }
  return negative(t, greatest_in(t, negated));
}
Results greatest(const Call& c) {
  return over_dims(c, [&](Row x) { return greatest_in(c.terms(), x); });
}
Results smallest(const Call& c) {
  return over_dims(c, [&](Row x) { return least_in(c.terms(), x); });
}
Results both_extremes(const Call& c) {
  const std::vector<int64_t> dims = c.list(9, "dim");
  const bool keep = c.flag(9, false, "keepdim");
  const Array a = c.array(0);
  return several(reduce(a, dims, keep, [&](Row x) { return least_in(c.terms(), x); }),
                 reduce(a, dims, keep, [&](Row x) { return greatest_in(c.terms(), x); }));
}
Results product(const Call& c) {
  return over_dims(c, [&](Row x) {
    Element e = c.terms().one();
    for (Element y : x) e = c.terms().multiply(e, y);
    return e;
  });
}

// ---- Norms: the sum of |x|^p, to the power 1 / p

// inf: the greatest magnitude; 0: how many are not zero. Of an even order magnitudes are left out,
// as x^2 is |x|^2.
// inf: the greatest magnitude; 0: how many are not zero. Of an even order magnitudes are left out,
// as x^2 is |x|^2.
Element norm_of(Terms& t, Row x, double p) {
  std::vector<Element> parts;
  if (std::isinf(p)) {
    for (Element e : x) parts.push_back(t.absolute(e));
    return p > 0 ? greatest_in(t, parts) : least_in(t, parts);
  }
  if (p == 0) {
    for (Element e : x) parts.push_back(t.subtract(t.one(), t.equal(e, t.zero())));
    return total_of(t, parts);
  }
  const auto order = rational_of(p);
  if (!order || order->denominator() > 8 || order->numerator() > 64)
    throw Unprovable("a norm of another order");
  const bool even = order->whole() && order->numerator() % 2 == 0;
  for (Element e : x) parts.push_back(t.power(even ? e : t.absolute(e), *order));
  return t.power(total_of(t, parts), Rational(1) / *order);
}
double order_of(const Call& c) {
  const auto& p = c.argument(1, "ord");
  return p.is_null() ? 2 : number_of(p);
}
Results norm(const Call& c) {
  const double p = order_of(c);
  if (p < 0 && !std::isinf(p)) throw Unprovable("a norm of another order");
  c.pass_over(4);
  return just(reduce(c.array(0), c.list(2, "dim"), c.flag(3, false, "keepdim"),
                     [&](Row x) { return norm_of(c.terms(), x, p); }));
}
// _foreach_norm: its third argument is a type.
Results norm_of_scalar(const Call& c) {
  const double p = order_of(c);
  c.pass_over(2);
  return just(reduce(c.array(0), {}, false, [&](Row x) { return norm_of(c.terms(), x, p); }));
}
Results distance(const Call& c) {
  Terms& t = c.terms();
  const double p = c.number(2, 2, "p");
  const Array apart =
      each(c.array(0), c.array(1), [&](Element x, Element y) { return t.subtract(x, y); });
  return just(Array::scalar(norm_of(t, apart.at, p)));
}
// Rows along dim whose norm is above the limit are shortened to it: x / (norm + 1e-7) * limit.
Results shortened(const Call& c) {
  Terms& t = c.terms();
  const Array x = c.array(0);
  const double p = c.number(1, 2);
  const size_t dim = dimension(c.whole(2, 0), x.dims());
  const Element limit = t.number(c.number(3, 1));
  std::vector<int64_t> others;
  for (size_t d = 0; d < x.dims(); ++d)
    if (d != dim) others.push_back(static_cast<int64_t>(d));
  const Array norms = reduce(x, others, true, [&](Row row) { return norm_of(t, row, p); });
  return just(each(x, norms, [&](Element e, Element n) {
    const Element shorter = t.divide(limit, t.add(n, t.number(1e-7)));
    return t.multiply(e,
                      t.add(t.one(), t.multiply(t.less(limit, n), t.subtract(shorter, t.one()))));
  }));
}

// ---- Cumulated

// y[0] is x[0], each other f(the one before, x). So a cumulated sum has i parts at place i.
// y[0] is x[0], each other f(the one before, x). So a cumulated sum of n has up to n parts at its
// end.
template <typename F>
Array cumulated_by(const Call& c, F f) {
  return along(c.array(0), c.whole(1, 0, "dim"), [&](Row x, std::span<Element> y) {
    for (size_t i = 0; i < x.size(); ++i) y[i] = i == 0 ? x[0] : f(y[i - 1], x[i]);
  });
}
Results cumsum(const Call& c) {
  return just(cumulated_by(c, [&](Element sum, Element x) { return c.terms().add(sum, x); }));
}
Results cumprod(const Call& c) {
  return just(cumulated_by(c, [&](Element all, Element x) { return c.terms().multiply(all, x); }));
}
template <bool kGreatest>
Results cumulated_extreme(const Call& c) {
  Results r = just(cumulated_by(c, [&](Element y, Element x) {
    return kGreatest ? greatest_of(c.terms(), y, x) : least(c.terms(), y, x);
  }));
  r.emplace_back(std::nullopt);  // where: nobody may ask
  return r;
}

// ---- Questions about all of them

// Of tokens a table, of truths on reals a product.
// Of tokens a table, of truths on reals a product.
template <bool kAny>
Results questioned(const Call& c) {
  Terms& t = c.terms();
  return over_dims(c, [&](Row x) {
    const auto found = t.map(
        [](std::span<const Rational> v) {
          const auto holds = [](const Rational& r) { return !r.zero(); };
          return Rational(kAny ? std::any_of(v.begin(), v.end(), holds)
                               : std::all_of(v.begin(), v.end(), holds));
        },
        x);
    if (found) return *found;
    // By the product of all of them, or of their opposites.
    Element all = t.one();
    for (Element e : x) {
      const Element holds = truth_of(t, e);
      all = t.multiply(all, kAny ? t.subtract(t.one(), holds) : holds);
    }
    return kAny ? t.subtract(t.one(), all) : all;
  });
}
Results counted(const Call& c) {
  Terms& t = c.terms();
  return just(reduce(c.array(0), c.list(1), false, [&](Row x) {
    std::vector<Element> truths;
    for (Element e : x) truths.push_back(truth_of(t, e));
    return total_of(t, truths);
  }));
}

}  // namespace

std::vector<OperatorEntry> reducing_operators() {
  return {{"sum", sum},
          {"nansum", sum},
          {"mean", mean},
          {"var", var},
          {"var_mean", var_mean},
          {"std", standard_deviation},
          {"std_mean", std_mean},
          {"amax", greatest},
          {"max.default", greatest},
          {"amin", smallest},
          {"min.default", smallest},
          {"aminmax", both_extremes},
          {"prod", product},
          {"linalg_vector_norm", norm},
          {"norm", norm},
          {"norm.Scalar", norm_of_scalar},
          {"dist", distance},
          {"renorm", shortened},
          {"cumsum", cumsum},
          {"cumprod", cumprod},
          {"cummax", cumulated_extreme<true>},
          {"cummin", cumulated_extreme<false>},
          {"any", questioned<true>},
          {"all", questioned<false>},
          {"count_nonzero", counted}};
}

}  // namespace opguard::proving
