// Sums, means, norms, maxima, products of matrices.
#include <algorithm>

#include "prove/operators.h"

namespace opguard::proving {
namespace {

Results single(Array a) {
  Results r;
  r.emplace_back(std::move(a));
  return r;
}

Array summed(Terms& t, const Array& a, const std::vector<int64_t>& dims, bool keep) {
  return reduce(a, dims, keep,
                [&](std::span<const Element> x) { return x.empty() ? t.zero() : t.sum(x); });
}
Results sum(const Call& c) {
  return single(summed(c.terms(), c.array(0), c.list(1, "dim"), c.flag(2, false, "keepdim")));
}
Array averaged(Terms& t, const Array& a, const std::vector<int64_t>& dims, bool keep) {
  const Array total = summed(t, a, dims, keep);
  const auto count = static_cast<int64_t>(a.at.size() / std::max<size_t>(total.at.size(), 1));
  return each(total, [&](Element e) { return t.scaled(e, Rational(1, count)); });
}
Results mean(const Call& c) {
  return single(averaged(c.terms(), c.array(0), c.list(1, "dim"), c.flag(2, false, "keepdim")));
}
// sum((x - mean)^2) / (n - correction)
Array variance(Terms& t, const Array& a, const std::vector<int64_t>& dims, bool keep,
               int64_t correction) {
  const Array middle = averaged(t, a, dims, true);
  const Array apart = each(a, middle, [&](Element x, Element m) { return t.subtract(x, m); });
  const Array squares = each(apart, [&](Element x) { return t.multiply(x, x); });
  const Array total = summed(t, squares, dims, keep);
  const auto count = static_cast<int64_t>(a.at.size() / std::max<size_t>(total.at.size(), 1));
  if (count <= correction) throw Unprovable("a variance of one number");
  return each(total, [&](Element e) { return t.scaled(e, Rational(1, count - correction)); });
}
Results var(const Call& c) {
  return single(variance(c.terms(), c.array(0), c.list(1, "dim"), c.flag(3, false, "keepdim"),
                         c.whole(2, 1, "correction")));
}
Results var_mean(const Call& c) {
  Results r = var(c);
  r.emplace_back(averaged(c.terms(), c.array(0), c.list(1, "dim"), c.flag(3, false, "keepdim")));
  return r;
}
Results greatest(const Call& c) {
  return single(reduce(c.array(0), c.list(1, "dim"), c.flag(2, false, "keepdim"),
                       [&](std::span<const Element> x) { return c.terms().maximum(x); }));
}
Results greatest_along(const Call& c) {
  Results r = greatest(c);
  r.emplace_back(std::nullopt);  // where: nobody may ask
  return r;
}
Results smallest(const Call& c) {
  Terms& t = c.terms();
  return single(reduce(c.array(0), c.list(1, "dim"), c.flag(2, false, "keepdim"),
                       [&](std::span<const Element> x) {
                         std::vector<Element> negative;
                         for (Element e : x) negative.push_back(t.scaled(e, Rational(-1)));
                         return t.scaled(t.maximum(negative), Rational(-1));
                       }));
}
Results product(const Call& c) {
  Terms& t = c.terms();
  return single(reduce(c.array(0), c.list(1, "dim"), c.flag(2, false, "keepdim"),
                       [&](std::span<const Element> x) {
                         Element e = t.one();
                         for (Element y : x) e = t.multiply(e, y);
                         return e;
                       }));
}
// The 2-norm, the 1-norm, the greatest.
Results norm(const Call& c) {
  Terms& t = c.terms();
  const double p = c.number(1, 2, "ord");
  const Array a = c.array(0);
  const std::vector<int64_t> dims = c.list(2, "dim");
  const bool keep = c.flag(3, false, "keepdim");
  const auto absolute = [&](Element e) { return t.function(Function::absolute, {e}); };
  if (p == 2)
    return single(reduce(a, dims, keep, [&](std::span<const Element> x) {
      std::vector<Element> squares;
      for (Element e : x) squares.push_back(t.multiply(e, e));
      const Element total = squares.empty() ? t.zero() : t.sum(squares);
      return t.power(total, Rational(1, 2));
    }));
  if (p == 1)
    return single(reduce(each(a, absolute), dims, keep,
                         [&](std::span<const Element> x) { return t.sum(x); }));
  if (p > 1e300)
    return single(reduce(each(a, absolute), dims, keep,
                         [&](std::span<const Element> x) { return t.maximum(x); }));
  throw Unprovable("a norm of another order");
}
Results cumulated(const Call& c) {
  Terms& t = c.terms();
  return single(along(c.array(0), c.whole(1, 0, "dim"),
                      [&](std::span<const Element> x, std::span<Element> y) {
                        Element sum = t.zero();
                        for (size_t i = 0; i < x.size(); ++i) y[i] = sum = t.add(sum, x[i]);
                      }));
}
Results mm(const Call& c) { return single(matrix_product(c.terms(), c.array(0), c.array(1))); }
Results bmm(const Call& c) { return single(batched_product(c.terms(), c.array(0), c.array(1))); }
Array plus(const Call& c, const Array& product_) {
  Terms& t = c.terms();
  const Element beta = t.number(c.number(3, 1, "beta")), alpha = t.number(c.number(4, 1, "alpha"));
  return each(c.array(0), product_, [&](Element x, Element y) {
    return t.add(t.multiply(x, beta), t.multiply(y, alpha));
  });
}
Results addmm(const Call& c) {
  return single(plus(c, matrix_product(c.terms(), c.array(1), c.array(2))));
}
Results baddbmm(const Call& c) {
  return single(plus(c, batched_product(c.terms(), c.array(1), c.array(2))));
}
Results dot(const Call& c) {
  Terms& t = c.terms();
  return single(summed(
      t, each(c.array(0), c.array(1), [&](Element x, Element y) { return t.multiply(x, y); }), {},
      false));
}
Results mv(const Call& c) {
  Array x = c.array(1);
  x.shape.push_back(1);
  Array y = matrix_product(c.terms(), c.array(0), x);
  y.shape.pop_back();
  return single(y);
}
Results any_of(const Call& c) {
  Terms& t = c.terms();
  return single(reduce(
      c.array(0), c.list(1, "dim"), c.flag(2, false, "keepdim"), [&](std::span<const Element> x) {
        const auto found = t.map(
            [](std::span<const Rational> v) {
              return Rational(
                  std::any_of(v.begin(), v.end(), [](const Rational& r) { return !r.zero(); }));
            },
            x);
        if (!found) throw Unprovable("a question about values");
        return *found;
      }));
}

}  // namespace

std::vector<OperatorEntry> reducing_operators() {
  return {{"sum", sum},
          {"mean", mean},
          {"var", var},
          {"var_mean", var_mean},
          {"amax", greatest},
          {"max.dim", greatest_along},
          {"max.default", greatest},
          {"amin", smallest},
          {"min.default", smallest},
          {"prod", product},
          {"linalg_vector_norm", norm},
          {"norm", norm},
          {"cumsum", cumulated},
          {"mm", mm},
          {"bmm", bmm},
          {"addmm", addmm},
          {"baddbmm", baddbmm},
          {"dot", dot},
          {"mv", mv},
          {"any", any_of}};
}

}  // namespace opguard::proving
