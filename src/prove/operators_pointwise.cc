// Element by element: arithmetic, functions, comparisons.
#include <cmath>

#include "prove/operators.h"

namespace opguard::proving {
namespace {

Results one(Array a) {
  Results r;
  r.emplace_back(std::move(a));
  return r;
}

Element scalar(const Call& c, double x) { return c.terms().number(x); }

// a + alpha * b
Results add_scaled(const Call& c, double sign) {
  Terms& t = c.terms();
  const Element alpha = scalar(c, sign * c.number(2, 1, "alpha"));
  return one(each(c.array(0), c.array(1),
                  [&](Element x, Element y) { return t.add(x, t.multiply(y, alpha)); }));
}
Results add(const Call& c) { return add_scaled(c, 1); }
Results sub(const Call& c) { return add_scaled(c, -1); }
Results rsub(const Call& c) {
  Terms& t = c.terms();
  const Element alpha = scalar(c, -c.number(2, 1, "alpha"));
  return one(each(c.array(0), c.array(1),
                  [&](Element x, Element y) { return t.add(y, t.multiply(x, alpha)); }));
}
Results mul(const Call& c) {
  return one(
      each(c.array(0), c.array(1), [&](Element x, Element y) { return c.terms().multiply(x, y); }));
}
Results div(const Call& c) {
  if (c.given(9, "rounding_mode")) {
    const auto mode = c.argument(9, "rounding_mode").get<std::string>();
    Terms& t = c.terms();
    return one(each(c.array(0), c.array(1), [&](Element x, Element y) {
      const Element both[] = {x, y};
      const auto found = t.map(
          [&](std::span<const Rational> v) {
            const double q = (v[0] / v[1]).value();
            return Rational(static_cast<int64_t>(mode == "floor" ? std::floor(q) : std::trunc(q)));
          },
          both);
      if (!found) throw Unprovable("a rounded division of values");
      return *found;
    }));
  }
  return one(
      each(c.array(0), c.array(1), [&](Element x, Element y) { return c.terms().divide(x, y); }));
}

template <typename F>
Results unary(const Call& c, F f) {
  return one(each(c.array(0), [&](Element x) { return f(c.terms(), x); }));
}
Results neg(const Call& c) {
  return unary(c, [](Terms& t, Element x) { return t.scaled(x, Rational(-1)); });
}
Results exp(const Call& c) {
  return unary(c, [](Terms& t, Element x) { return t.exp(x); });
}
Results log(const Call& c) {
  return unary(c, [](Terms& t, Element x) { return t.log(x); });
}
Results square_root(const Call& c) {
  return unary(c, [](Terms& t, Element x) { return t.power(x, Rational(1, 2)); });
}
Results rsqrt(const Call& c) {
  return unary(c, [](Terms& t, Element x) { return t.power(x, Rational(-1, 2)); });
}
Results reciprocal(const Call& c) {
  return unary(c, [](Terms& t, Element x) { return t.power(x, Rational(-1)); });
}
Results square(const Call& c) {
  return unary(c, [](Terms& t, Element x) { return t.multiply(x, x); });
}
Results pow(const Call& c) {
  const Array exponents = c.array(1);
  return one(each(c.array(0), exponents, [&](Element x, Element y) {
    const auto n = c.terms().constant(y);
    if (!n) throw Unprovable("an exponent that nobody knows");
    if (!n->whole() && n->denominator() > 8) throw Unprovable("an exponent of many digits");
    return c.terms().power(x, *n);
  }));
}
template <Function kFunction>
Results function(const Call& c) {
  return unary(c, [](Terms& t, Element x) { return t.function(kFunction, {x}); });
}
Element sigmoid_of(Terms& t, Element x) { return t.function(Function::sigmoid, {x}); }
Results silu(const Call& c) {
  return unary(c, [](Terms& t, Element x) { return t.multiply(x, sigmoid_of(t, x)); });
}
// g * s * (1 + x * (1 - s))
Results silu_backward(const Call& c) {
  Terms& t = c.terms();
  return one(each(c.array(0), c.array(1), [&](Element g, Element x) {
    const Element s = sigmoid_of(t, x);
    const Element inner = t.add(t.one(), t.multiply(x, t.subtract(t.one(), s)));
    return t.multiply(g, t.multiply(s, inner));
  }));
}
// g * y * (1 - y)
Results sigmoid_backward(const Call& c) {
  Terms& t = c.terms();
  return one(each(c.array(0), c.array(1), [&](Element g, Element y) {
    return t.multiply(g, t.multiply(y, t.subtract(t.one(), y)));
  }));
}
Results tanh_backward(const Call& c) {
  Terms& t = c.terms();
  return one(each(c.array(0), c.array(1), [&](Element g, Element y) {
    return t.multiply(g, t.subtract(t.one(), t.multiply(y, y)));
  }));
}
Element step_of(Terms& t, Element x) {
  if (const auto n = t.constant(x)) return n->numerator() > 0 ? t.one() : t.zero();
  // Of a relu's result, x * step(x), it is the step of x.
  const Product p = t.product(x);
  if (p.factor == Rational(1)) {
    const FactorList factors = t.factors(p.monomial);
    for (const Factor& f : factors) {
      const AtomValue& v = t.atom(f.atom);
      if (v.kind != AtomKind::function || v.first != static_cast<uint32_t>(Function::step))
        continue;
      const Element inside = v.arguments[0];
      const Element step = t.function(Function::step, {inside});
      if (f.exponent == 1 && t.multiply(inside, step) == x) return step;
    }
  }
  return t.function(Function::step, {x});
}
Results relu(const Call& c) {
  return unary(c, [](Terms& t, Element x) { return t.multiply(x, step_of(t, x)); });
}
// g where the value is above the threshold.
Results threshold_backward(const Call& c) {
  Terms& t = c.terms();
  const Element limit = scalar(c, c.number(2, 0));
  return one(each(c.array(0), c.array(1), [&](Element g, Element x) {
    // Of a relu's own result the step is its argument's.
    return t.multiply(g, step_of(t, t.subtract(x, limit)));
  }));
}
// x/2 (1 + erf(x / sqrt 2)), or by tanh.
struct Gelu {
  Element value, slope;
};
Gelu gelu_of(Terms& t, Element x, bool by_tanh) {
  const Element half = t.rational(Rational(1, 2)), one_ = t.one();
  if (!by_tanh) {
    const Element e = t.function(Function::erf, {t.multiply(x, t.number(std::sqrt(0.5)))});
    const Element cdf = t.multiply(half, t.add(one_, e));
    const Element density = t.multiply(t.exp(t.scaled(t.multiply(x, x), Rational(-1, 2))),
                                       t.number(1 / std::sqrt(2 * M_PI)));
    return {t.multiply(x, cdf), t.add(cdf, t.multiply(x, density))};
  }
  const Element k = t.number(std::sqrt(2 / M_PI)), cubic = t.number(0.044715);
  const Element inner = t.multiply(k, t.add(x, t.multiply(cubic, t.power(x, Rational(3)))));
  const Element y = t.function(Function::tanh, {inner});
  const Element left = t.multiply(half, t.add(one_, y));
  const Element slope =
      t.multiply(k, t.add(one_, t.multiply(t.scaled(cubic, Rational(3)), t.multiply(x, x))));
  const Element right =
      t.multiply(t.multiply(half, x), t.multiply(t.subtract(one_, t.multiply(y, y)), slope));
  return {t.multiply(x, left), t.add(left, right)};
}
bool by_tanh(const Call& c, size_t i) {
  const auto& a = c.argument(i, "approximate");
  return a.is_string() && a == "tanh";
}
Results gelu(const Call& c) {
  const bool way = by_tanh(c, 1);
  return unary(c, [way](Terms& t, Element x) { return gelu_of(t, x, way).value; });
}
Results gelu_backward(const Call& c) {
  Terms& t = c.terms();
  const bool way = by_tanh(c, 2);
  return one(each(c.array(0), c.array(1),
                  [&](Element g, Element x) { return t.multiply(g, gelu_of(t, x, way).slope); }));
}

Results lerp(const Call& c) {
  Terms& t = c.terms();
  const Array all[] = {c.array(0), c.array(1), c.array(2)};
  return one(each(all, [&](std::span<const Element> x) {
    return t.add(x[0], t.multiply(t.subtract(x[1], x[0]), x[2]));
  }));
}
Results addcmul(const Call& c) {
  Terms& t = c.terms();
  const Element value = scalar(c, c.number(3, 1, "value"));
  const Array all[] = {c.array(0), c.array(1), c.array(2)};
  return one(each(all, [&](std::span<const Element> x) {
    return t.add(x[0], t.multiply(t.multiply(x[1], x[2]), value));
  }));
}
Results addcdiv(const Call& c) {
  Terms& t = c.terms();
  const Element value = scalar(c, c.number(3, 1, "value"));
  const Array all[] = {c.array(0), c.array(1), c.array(2)};
  return one(each(all, [&](std::span<const Element> x) {
    return t.add(x[0], t.multiply(t.divide(x[1], x[2]), value));
  }));
}

Element least(Terms& t, Element x, Element y) {
  const Element both[] = {t.scaled(x, Rational(-1)), t.scaled(y, Rational(-1))};
  return t.scaled(t.maximum(both), Rational(-1));
}
Results maximum(const Call& c) {
  return one(each(c.array(0), c.array(1), [&](Element x, Element y) {
    const Element both[] = {x, y};
    return c.terms().maximum(both);
  }));
}
Results minimum(const Call& c) {
  return one(
      each(c.array(0), c.array(1), [&](Element x, Element y) { return least(c.terms(), x, y); }));
}
Results clamp(const Call& c) {
  Terms& t = c.terms();
  Array a = c.array(0);
  const bool low = c.given(1, "min"), high = c.given(2, "max");
  const auto bounded = [&](const Array& x, const Array& bound, bool below) {
    return each(x, bound, [&](Element e, Element b) {
      const Element both[] = {e, b};
      if (const auto mapped = t.map(
              [&](std::span<const Rational> v) {
                return ((v[0] - v[1]).numerator() < 0) == below ? v[1] : v[0];
              },
              both))
        return *mapped;
      return below ? t.maximum(both) : least(t, e, b);
    });
  };
  if (low) a = bounded(a, c.array(1, "min"), true);
  if (high) a = bounded(a, c.array(2, "max"), false);
  return one(a);
}

template <typename F>
Results compared(const Call& c, F f, bool swap, bool negate) {
  Terms& t = c.terms();
  return one(each(c.array(0), c.array(1), [&](Element x, Element y) {
    const Element both[] = {x, y};
    if (const auto mapped = t.map(
            [&](std::span<const Rational> v) { return Rational(f((v[0] - v[1]).numerator())); },
            both))
      return *mapped;
    if (x == y) return f(0) ? t.one() : t.zero();
    const Element less =
        swap ? t.function(Function::less, {y, x}) : t.function(Function::less, {x, y});
    return negate ? t.subtract(t.one(), less) : less;
  }));
}
Results lt(const Call& c) {
  return compared(c, [](int64_t d) { return d < 0; }, false, false);
}
Results gt(const Call& c) {
  return compared(c, [](int64_t d) { return d > 0; }, true, false);
}
Results le(const Call& c) {
  return compared(c, [](int64_t d) { return d <= 0; }, true, true);
}
Results ge(const Call& c) {
  return compared(c, [](int64_t d) { return d >= 0; }, false, true);
}
template <bool kEqual>
Results equality(const Call& c) {
  Terms& t = c.terms();
  return one(each(c.array(0), c.array(1), [&](Element x, Element y) {
    const Element both[] = {x, y};
    if (const auto mapped = t.map(
            [&](std::span<const Rational> v) { return Rational((v[0] == v[1]) == kEqual); }, both))
      return *mapped;
    if (x == y) return kEqual ? t.one() : t.zero();
    throw Unprovable("a question whether two values are equal");
  }));
}
template <int kTruth>  // bit 2 * x + y: the answer
Results logic(const Call& c) {
  Terms& t = c.terms();
  return one(each(c.array(0), c.array(1), [&](Element x, Element y) {
    const Element both[] = {x, y};
    const auto mapped = t.map(
        [](std::span<const Rational> v) {
          return Rational(kTruth >> (2 * !v[0].zero() + !v[1].zero()) & 1);
        },
        both);
    if (mapped) return *mapped;
    // Products and sums of conditions on values and tokens.
    if (kTruth == 0b1000) return t.multiply(x, y);
    if (kTruth == 0b1110) return t.subtract(t.add(x, y), t.multiply(x, y));
    throw Unprovable("a condition on two values");
  }));
}
Results negation(const Call& c) {
  return unary(c, [](Terms& t, Element x) {
    const Element only[] = {x};
    if (const auto mapped =
            t.map([](std::span<const Rational> v) { return Rational(v[0].zero()); }, only))
      return *mapped;
    return t.subtract(t.one(), x);
  });
}
template <bool kFloor>
Results remainder(const Call& c) {
  Terms& t = c.terms();
  return one(each(c.array(0), c.array(1), [&](Element x, Element y) {
    const Element both[] = {x, y};
    const auto mapped = t.map(
        [](std::span<const Rational> v) {
          const auto q = static_cast<int64_t>(std::floor((v[0] / v[1]).value()));
          return kFloor ? Rational(q) : v[0] - Rational(q) * v[1];
        },
        both);
    if (!mapped) throw Unprovable("a remainder of values");
    return *mapped;
  }));
}
// condition * a + (1 - condition) * b, by tokens where it can.
Element chosen(Terms& t, Element condition, Element a, Element b) {
  if (a == b) return a;
  if (t.table(condition)) return t.where(condition, a, b);
  if (a == t.minus_infinity() || b == t.minus_infinity())
    throw Unprovable("minus infinity where a condition on values holds");
  return t.add(b, t.multiply(condition, t.subtract(a, b)));
}
Results where(const Call& c) {
  const Array all[] = {c.array(0), c.array(1), c.array(2)};
  return one(
      each(all, [&](std::span<const Element> x) { return chosen(c.terms(), x[0], x[1], x[2]); }));
}
Results masked_fill(const Call& c) {
  const Array all[] = {c.array(0), c.array(1), c.array(2)};
  return one(
      each(all, [&](std::span<const Element> x) { return chosen(c.terms(), x[1], x[2], x[0]); }));
}
// A cast. To bool: whether it is not zero.
Results same(const Call& c) {
  const auto& results = c.node().results;
  if (results.empty() || results[0].dtype != "bool") return one(c.array(0));
  return unary(c, [](Terms& t, Element x) {
    const Element only[] = {x};
    const auto truth =
        t.map([](std::span<const Rational> v) { return Rational(!v[0].zero()); }, only);
    return truth ? *truth : x;
  });
}
Results copied(const Call& c) { return one(broadcast_to(c.array(1), c.tensor(0).shape)); }
Results zeros(const Call& c) { return one(Array::scalar(c.terms().zero())); }
Results ones(const Call& c) { return one(Array::scalar(c.terms().one())); }
Results filled(const Call& c) { return one(c.array(1)); }

}  // namespace

std::vector<OperatorEntry> pointwise_operators() {
  return {{"add", add},
          {"sub", sub},
          {"rsub", rsub},
          {"mul", mul},
          {"div", div},
          {"neg", neg},
          {"exp", exp},
          {"log", log},
          {"sqrt", square_root},
          {"rsqrt", rsqrt},
          {"reciprocal", reciprocal},
          {"square", square},
          {"pow", pow},
          {"sigmoid", function<Function::sigmoid>},
          {"tanh", function<Function::tanh>},
          {"erf", function<Function::erf>},
          {"sin", function<Function::sin>},
          {"cos", function<Function::cos>},
          {"abs", function<Function::absolute>},
          {"sgn", function<Function::sign>},
          {"sign", function<Function::sign>},
          {"silu", silu},
          {"silu_backward", silu_backward},
          {"sigmoid_backward", sigmoid_backward},
          {"tanh_backward", tanh_backward},
          {"relu", relu},
          {"threshold_backward", threshold_backward},
          {"gelu", gelu},
          {"gelu_backward", gelu_backward},
          {"lerp", lerp},
          {"addcmul", addcmul},
          {"addcdiv", addcdiv},
          {"maximum", maximum},
          {"minimum", minimum},
          {"clamp", clamp},
          {"clamp_min", clamp},
          {"lt", lt},
          {"gt", gt},
          {"le", le},
          {"ge", ge},
          {"eq", equality<true>},
          {"ne", equality<false>},
          {"bitwise_and", logic<0b1000>},
          {"logical_and", logic<0b1000>},
          {"__and__", logic<0b1000>},
          {"bitwise_or", logic<0b1110>},
          {"logical_or", logic<0b1110>},
          {"__or__", logic<0b1110>},
          {"bitwise_xor", logic<0b0110>},
          {"logical_xor", logic<0b0110>},
          {"bitwise_not", negation},
          {"logical_not", negation},
          {"floor_divide", remainder<true>},
          {"remainder", remainder<false>},
          {"where", where},
          {"masked_fill", masked_fill},
          {"clone", same},
          {"_to_copy", same},
          {"contiguous", same},
          {"to", same},
          {"lift_fresh", same},
          {"reshape", same},
          {"copy", copied},
          {"zeros_like", zeros},
          {"zero", zeros},
          {"new_zeros", zeros},
          {"zeros", zeros},
          {"ones_like", ones},
          {"ones", ones},
          {"new_ones", ones},
          {"full_like", filled},
          {"fill", filled}};
}

}  // namespace opguard::proving
