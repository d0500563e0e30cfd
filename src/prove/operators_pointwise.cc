// Element by element: arithmetic, powers, copies.
//
//   add(x, y, alpha=2)    x + 2 y
//   addcdiv(x, y, z)      x + value y / z, where z is not zero by assumption
//   2 ** x                exp(x log(2)): a positive number to an unknown power
//   x ** y                Unprovable, where both are unknown
//
// Inputs broadcast as torch's do. What an operator writes in place, or into out=, is the caller's
// (operators.cc).
//
// Counterexample: x / y rounded to whole numbers is for tokens alone.
#include <cmath>

#include "prove/meanings.h"

namespace opguard::proving {
namespace {

// a + alpha * b
Results add_scaled(const Call& c, double sign) {
  Terms& t = c.terms();
  const Element alpha = t.number(sign * c.number(2, 1, "alpha"));
  return just(each(c.array(0), c.array(1),
                   [&](Element x, Element y) { return t.add(x, t.multiply(y, alpha)); }));
}
Results add(const Call& c) { return add_scaled(c, 1); }
Results sub(const Call& c) { return add_scaled(c, -1); }
Results rsub(const Call& c) {
  Terms& t = c.terms();
  const Element alpha = t.number(-c.number(2, 1, "alpha"));
  return just(each(c.array(0), c.array(1),
                   [&](Element x, Element y) { return t.add(y, t.multiply(x, alpha)); }));
}
Results mul(const Call& c) {
  return of_two(c, [](Terms& t, Element x, Element y) { return t.multiply(x, y); });
}
Results div(const Call& c) {
  const std::string mode = c.text(9, "", "rounding_mode");
  if (mode.empty()) return of_two(c, [](Terms& t, Element x, Element y) { return t.divide(x, y); });
  if (mode != "floor" && mode != "trunc") throw Unprovable("a division rounded by " + mode);
  return of_two(c, [&](Terms& t, Element x, Element y) {
    const Element both[] = {x, y};
    return mapped_or(
        t, both,
        [&](std::span<const Rational> v) {
          return Rational(mode == "floor" ? floor_of(v[0] / v[1]) : trunc_of(v[0] / v[1]));
        },
        "a rounded division of values");
  });
}
Results neg(const Call& c) { return of_one(c, negative); }
Results square_root(const Call& c) {
  return of_one(c, [](Terms& t, Element x) { return t.power(x, Rational(1, 2)); });
}
Results rsqrt(const Call& c) {
  return of_one(c, [](Terms& t, Element x) { return t.power(x, Rational(-1, 2)); });
}
Results reciprocal(const Call& c) {
  return of_one(c, [](Terms& t, Element x) { return t.power(x, Rational(-1)); });
}
// A fraction's denominator is at most 8, which has square and cube roots. One of many digits is
// hardly meant.
// A fraction's denominator is at most 8, which has square and cube roots. One of many digits is
// hardly meant.
Element raised_to(Terms& t, Element x, Element y) {
  if (const auto n = t.constant(y)) {
    if (!n->whole() && n->denominator() > 8) throw Unprovable("an exponent of many digits");
    return t.power(x, *n);
  }
  // A positive number to an unknown power.
  if (const auto base = t.constant(x); base && base->numerator() > 0)
    return t.exp(t.multiply(y, t.log(x)));
  throw Unprovable("an exponent that nobody knows");
}
Results pow(const Call& c) { return of_two(c, raised_to); }
Results lerp(const Call& c) {
  return of_three(c, [](Terms& t, Element x, Element y, Element weight) {
    return t.add(x, t.multiply(t.subtract(y, x), weight));
  });
}
// x + value * y * z, or x + value * y / z
// x + value * y * z, or x + value * y / z
template <bool kDivides>
Results add_combined(const Call& c) {
  Terms& t = c.terms();
  const Array all[] = {c.array(0), c.array(1), c.array(2),
                       c.array_if_given(3, "value").value_or(Array::scalar(t.one()))};
  return just(each(all, [&](std::span<const Element> x) {
    const Element both = kDivides ? t.divide(x[1], x[2]) : t.multiply(x[1], x[2]);
    return t.add(x[0], t.multiply(both, x[3]));
  }));
}
// x log y, which is 0 where x is 0. xlog1py(x, y) is x log(1 + y).
template <bool kPlusOne>
Results x_log_y(const Call& c) {
  return of_two(c, [](Terms& t, Element x, Element y) {
    if (x == t.zero()) return t.zero();
    return t.multiply(x, t.log(kPlusOne ? t.add(t.one(), y) : y));
  });
}
// log(exp x + exp y)
Results log_add_exp(const Call& c) {
  return of_two(c, [](Terms& t, Element x, Element y) { return t.log(t.add(t.exp(x), t.exp(y))); });
}
// The same by powers of two: log2(2^x + 2^y).
// The same by powers of two: log2(2^x + 2^y).
Results log_add_exp_2(const Call& c) {
  return of_two(c, [](Terms& t, Element x, Element y) {
    const Element two = t.rational(2), ln = t.log(two);
    const Element sum = t.add(t.exp(t.multiply(x, ln)), t.exp(t.multiply(y, ln)));
    return t.divide(t.log(sum), ln);
  });
}
Results hypotenuse(const Call& c) {
  return of_two(c, [](Terms& t, Element x, Element y) {
    return t.power(t.add(t.multiply(x, x), t.multiply(y, y)), Rational(1, 2));
  });
}
// Floats are cast exactly; what has to be a whole number is looked at as it is stored.
Results cast(const Call& c) {
  if (c.node().results.empty() || c.node().results[0].dtype != "bool") return just(c.array(0));
  return of_one(c, truth_of);
}
// copy_(to, from): what was there before does not count.
// copy_(to, from): what was there before does not count.
Results copied(const Call& c) {
  c.pass_over(2, "non_blocking");
  return just(broadcast_to(c.array(1), c.tensor(0).shape));
}

}  // namespace

std::vector<OperatorEntry> pointwise_operators() {
  return {{"add", add},
          {"sub", sub},
          {"rsub", rsub},
          {"mul", mul},
          {"div", div},
          {"neg", neg},
          {"sqrt", square_root},
          {"rsqrt", rsqrt},
          {"reciprocal", reciprocal},
          {"pow", pow},
          {"lerp", lerp},
          {"addcmul", add_combined<false>},
          {"addcdiv", add_combined<true>},
          {"xlogy", x_log_y<false>},
          {"special_xlog1py", x_log_y<true>},
          {"logaddexp", log_add_exp},
          {"logaddexp2", log_add_exp_2},
          {"hypot", hypotenuse},
          {"clone", cast},
          {"_to_copy", cast},
          {"copy", copied}};
}

}  // namespace opguard::proving
