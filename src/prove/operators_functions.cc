// Functions of one or two reals. Where one is made of others it is written so, and its spellings
// are one term:
//
//   log1p(x)  log(1 + x)     sinh(x)  (exp(x) - exp(-x)) / 2     acos(x)  pi / 2 - asin(x)
//   log2(x)   log(x) / log(2)     erfc(x)  1 - erf(x)     exp2(x)  exp(x log(2))
//
// Counterexample: tanh stays a function of its own, since gradients are in terms of its value. So
// tanh(x) and sinh(x) / cosh(x) are two elements.
//
// What stays is known by numbers alone (evaluate.cc): of erf(x) a proof knows only that equal x
// have equal values.
#include <cmath>

#include "prove/meanings.h"

namespace opguard::proving {
namespace {

// An atom, but for its value at 0, which is a number.
template <Function kFunction>
Results function_of(const Call& c) {
  return of_one(c, [](Terms& t, Element x) {
    // All of them but the logarithms of gamma are 0 at 0, and cos is 1.
    if (x == t.zero() && kFunction != Function::log_gamma && kFunction != Function::digamma)
      return kFunction == Function::cos ? t.one() : t.zero();
    if (x == t.minus_infinity()) throw Unprovable("a function of infinity");
    return t.function(kFunction, {x});
  });
}
Element plus_one(Terms& t, Element x) { return t.add(t.one(), x); }
// log(x) / log(base)
template <int64_t kBase>
Results logarithm(const Call& c) {
  return of_one(c,
                [](Terms& t, Element x) { return t.divide(t.log(x), t.log(t.rational(kBase))); });
}
Results exponential(const Call& c) {
  return of_one(c, [](Terms& t, Element x) { return t.exp(x); });
}
Results natural_logarithm(const Call& c) {
  return of_one(c, [](Terms& t, Element x) { return t.log(x); });
}
Results exp_minus_one(const Call& c) {
  return of_one(c, [](Terms& t, Element x) { return t.subtract(t.exp(x), t.one()); });
}
Results log_plus_one(const Call& c) {
  return of_one(c, [](Terms& t, Element x) { return t.log(plus_one(t, x)); });
}
Results power_of_two(const Call& c) {
  return of_one(c, [](Terms& t, Element x) { return t.exp(t.multiply(x, t.log(t.rational(2)))); });
}
// (exp(x) + sign * exp(-x)) / 2
template <int64_t kSign>
Results hyperbolic(const Call& c) {
  return of_one(c, [](Terms& t, Element x) {
    const Element other = t.scaled(t.exp(negative(t, x)), Rational(kSign));
    return t.scaled(t.add(t.exp(x), other), Rational(1, 2));
  });
}
// log(x + sqrt(x^2 + sign))
template <int64_t kSign>
Results hyperbolic_inverse(const Call& c) {
  return of_one(c, [](Terms& t, Element x) {
    const Element inside = t.add(t.multiply(x, x), t.rational(kSign));
    return t.log(t.add(x, t.power(inside, Rational(1, 2))));
  });
}
// (log(1 + x) - log(1 - x)) / 2
Results inverse_tanh(const Call& c) {
  return of_one(c, [](Terms& t, Element x) {
    const Element above = t.log(plus_one(t, x)), below = t.log(t.subtract(t.one(), x));
    return t.scaled(t.subtract(above, below), Rational(1, 2));
  });
}
Results inverse_cosine(const Call& c) {
  return of_one(c, [](Terms& t, Element x) {
    return t.subtract(t.number(M_PI / 2), t.function(Function::arcsine, {x}));
  });
}
Results angle_of(const Call& c) {
  return of_two(c,
                [](Terms& t, Element y, Element x) { return t.function(Function::angle, {y, x}); });
}
Results erf_complement(const Call& c) {
  return of_one(
      c, [](Terms& t, Element x) { return t.subtract(t.one(), t.function(Function::erf, {x})); });
}
// sin(pi x) / (pi x)
Results sinc(const Call& c) {
  return of_one(c, [](Terms& t, Element x) {
    if (x == t.zero()) return t.one();
    const Element angle = t.multiply(x, t.number(M_PI));
    return t.divide(t.function(Function::sin, {angle}), angle);
  });
}
// log(x / (1 - x)), of an x that eps keeps from 0 and 1.
Element clipped(Terms& t, Element x, double eps) {
  return least(t, greatest_of(t, x, t.number(eps)), t.subtract(t.one(), t.number(eps)));
}
// eps below 0: x is taken as it is. That it lies between 0 and 1 is then assumed by the logarithms.
Results logit(const Call& c) {
  const double eps = c.number(1, -1, "eps");
  return of_one(c, [&](Terms& t, Element x) {
    const Element inside = eps < 0 ? x : clipped(t, x, eps);
    return t.subtract(t.log(inside), t.log(t.subtract(t.one(), inside)));
  });
}
// g / (x (1 - x)), and 0 where eps clips it.
Results logit_backward(const Call& c) {
  const double eps = c.number(2, -1, "eps");
  return of_two(c, [&](Terms& t, Element g, Element x) {
    const Element slope = t.divide(g, t.multiply(x, t.subtract(t.one(), x)));
    if (eps < 0) return slope;
    const Element low = t.less(x, t.number(eps)),
                  high = t.less(t.subtract(t.one(), t.number(eps)), x);
    return t.multiply(slope, t.multiply(t.subtract(t.one(), low), t.subtract(t.one(), high)));
  });
}
template <bool kToRadians>
Results degrees(const Call& c) {
  const double factor = kToRadians ? M_PI / 180 : 180 / M_PI;
  return of_one(c, [&](Terms& t, Element x) { return t.multiply(x, t.number(factor)); });
}
Results absolute(const Call& c) {
  return of_one(c, [](Terms& t, Element x) { return t.absolute(x); });
}
Results sign(const Call& c) {
  return of_one(c, [](Terms& t, Element x) { return t.sign(x); });
}
// -x log(x), which is 0 at 0.
Results entropy(const Call& c) {
  return of_one(c, [](Terms& t, Element x) {
    return x == t.zero() ? x : negative(t, t.multiply(x, t.log(x)));
  });
}

}  // namespace

std::vector<OperatorEntry> function_operators() {
  return {{"exp", exponential},
          {"log", natural_logarithm},
          {"expm1", exp_minus_one},
          {"log1p", log_plus_one},
          {"log2", logarithm<2>},
          {"log10", logarithm<10>},
          {"exp2", power_of_two},
          {"tanh", function_of<Function::tanh>},
          {"erf", function_of<Function::erf>},
          {"erfc", erf_complement},
          {"erfinv", function_of<Function::inverse_erf>},
          {"lgamma", function_of<Function::log_gamma>},
          {"digamma", function_of<Function::digamma>},
          {"sin", function_of<Function::sin>},
          {"cos", function_of<Function::cos>},
          {"tan", function_of<Function::tan>},
          {"asin", function_of<Function::arcsine>},
          {"acos", inverse_cosine},
          {"atan", function_of<Function::arctangent>},
          {"atan2", angle_of},
          {"sinh", hyperbolic<-1>},
          {"cosh", hyperbolic<1>},
          {"asinh", hyperbolic_inverse<1>},
          {"acosh", hyperbolic_inverse<-1>},
          {"atanh", inverse_tanh},
          {"sinc", sinc},
          {"logit", logit},
          {"logit_backward", logit_backward},
          {"deg2rad", degrees<true>},
          {"rad2deg", degrees<false>},
          {"special_entr", entropy},
          {"abs", absolute},
          {"sgn", sign},
          {"sign", sign}};
}

}  // namespace opguard::proving
