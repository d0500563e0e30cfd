// Activations with their gradients: each is made of step, exp, log and sigmoid.
//
//   leaky_relu(x), slope 1/10     x (1/10 + 9/10 step(x))
//   its gradient                  g (1/10 + 9/10 step(x))
//
// A function of two pieces is one piece, plus a step times what the other has more (either()). So
// forward and gradient share the step's atom, and so does a plan that masks by x > 0.
//
// At a corner the gradient is what ATen takes there: 0 of relu at 0, since step(0) is 0.
//
// Counterexample: cuts that ATen makes for a float's sake are not made. Its softplus is x above 20;
// here it is log(1 + exp(x)) everywhere.
#include <cmath>

#include "prove/meanings.h"

namespace opguard::proving {
namespace {

// condition ? a : b, of a condition on reals.
Element either(Terms& t, Element condition, Element a, Element b) {
  return t.add(b, t.multiply(condition, t.subtract(a, b)));
}
// low < x < high, neither bound included: there hardtanh has no slope.
Element between(Terms& t, Element x, Element low, Element high) {
  return t.multiply(t.less(low, x), t.less(x, high));
}
Element beside_one(Terms& t, Element x) { return t.subtract(t.one(), x); }
Element softplus_of(Terms& t, Element x) { return t.log(t.add(t.one(), t.exp(x))); }

Results sigmoid(const Call& c) {
  return of_one(c, [](Terms& t, Element x) { return t.sigmoid(x); });
}
Results silu(const Call& c) {
  return of_one(c, [](Terms& t, Element x) { return t.multiply(x, t.sigmoid(x)); });
}
// g * s * (1 + x * (1 - s))
Results silu_backward(const Call& c) {
  return of_two(c, [](Terms& t, Element g, Element x) {
    const Element s = t.sigmoid(x);
    return t.multiply(g, t.multiply(s, t.add(t.one(), t.multiply(x, beside_one(t, s)))));
  });
}
// g * y * (1 - y)
Results sigmoid_backward(const Call& c) {
  return of_two(c, [](Terms& t, Element g, Element y) {
    return t.multiply(g, t.multiply(y, beside_one(t, y)));
  });
}
// g * (1 - y * y)
Results tanh_backward(const Call& c) {
  return of_two(c, [](Terms& t, Element g, Element y) {
    return t.multiply(g, beside_one(t, t.multiply(y, y)));
  });
}
Results relu(const Call& c) {
  return of_one(c, [](Terms& t, Element x) { return t.relu(x); });
}
// x where it is above the limit, else the value.
Results threshold(const Call& c) {
  const Element limit = c.terms().number(c.number(1, 0)), value = c.terms().number(c.number(2, 0));
  return of_one(c, [&](Terms& t, Element x) { return either(t, t.less(limit, x), x, value); });
}
Results threshold_backward(const Call& c) {
  const Element limit = c.terms().number(c.number(2, 0));
  return of_two(c, [&](Terms& t, Element g, Element x) { return t.multiply(g, t.less(limit, x)); });
}
// x/2 (1 + erf(x / sqrt 2)), or x/2 (1 + tanh(k (x + 0.044715 x^3))) with k = sqrt(2 / pi). slope:
// the derivative.
struct Gelu {
  Element value, slope;
};
Gelu gelu_of(Terms& t, Element x, bool by_tanh) {
  const Element half = t.rational(Rational(1, 2)), one = t.one();
  if (!by_tanh) {
    const Element e = t.function(Function::erf, {t.multiply(x, t.number(std::sqrt(0.5)))});
    const Element share = t.multiply(half, t.add(one, e));
    const Element density = t.multiply(t.exp(t.scaled(t.multiply(x, x), Rational(-1, 2))),
                                       t.number(1 / std::sqrt(2 * M_PI)));
    return {t.multiply(x, share), t.add(share, t.multiply(x, density))};
  }
  const Element k = t.number(std::sqrt(2 / M_PI)), cubic = t.number(0.044715);
  const Element inner = t.multiply(k, t.add(x, t.multiply(cubic, t.power(x, Rational(3)))));
  const Element y = t.function(Function::tanh, {inner});
  const Element left = t.multiply(half, t.add(one, y));
  const Element slope =
      t.multiply(k, t.add(one, t.multiply(t.scaled(cubic, Rational(3)), t.multiply(x, x))));
  const Element right =
      t.multiply(t.multiply(half, x), t.multiply(beside_one(t, t.multiply(y, y)), slope));
  return {t.multiply(x, left), t.add(left, right)};
}
// The two are other functions: no proof turns one into the other.
bool by_tanh(const Call& c, size_t i) {
  const std::string way = c.text(i, "none", "approximate");
  if (way != "tanh" && way != "none") throw Unprovable("a gelu by " + way);
  return way == "tanh";
}
Results gelu(const Call& c) {
  const bool way = by_tanh(c, 1);
  return of_one(c, [way](Terms& t, Element x) { return gelu_of(t, x, way).value; });
}
Results gelu_backward(const Call& c) {
  const bool way = by_tanh(c, 2);
  return of_two(
      c, [way](Terms& t, Element g, Element x) { return t.multiply(g, gelu_of(t, x, way).slope); });
}

// x > 0: positive * x, else negative * (exp(x * input) - 1)
struct Elu {
  Element positive, negative, input;
};
Elu elu_scales(const Call& c, size_t first) {
  Terms& t = c.terms();
  const Element alpha = t.number(c.number(first, 1)), scale = t.number(c.number(first + 1, 1));
  return {scale, t.multiply(alpha, scale), t.number(c.number(first + 2, 1))};
}
Element elu_of(Terms& t, Element x, const Elu& by) {
  const Element below =
      t.multiply(by.negative, t.subtract(t.exp(t.multiply(x, by.input)), t.one()));
  return either(t, t.step(x), t.multiply(x, by.positive), below);
}
Results elu(const Call& c) {
  const Elu by = elu_scales(c, 1);
  return of_one(c, [&](Terms& t, Element x) { return elu_of(t, x, by); });
}
// x > 0: x, else alpha * (exp(x / alpha) - 1)
Results celu(const Call& c) {
  Terms& t = c.terms();
  const Element alpha = t.number(c.number(1, 1));
  const Elu by{t.one(), alpha, t.power(alpha, Rational(-1))};
  return of_one(c, [&](Terms&, Element x) { return elu_of(t, x, by); });
}
// Of the result where is_result, else of what went in. A result y below 0 is negative * (exp(x *
// input) - 1), so y + negative is the part with exp.
Results elu_backward(const Call& c) {
  Terms& t = c.terms();
  const Elu by = elu_scales(c, 1);
  const bool is_result = c.flag(4, false);
  return just(each(c.array(0), c.array(5), [&](Element g, Element x) {
    const Element below =
        is_result ? t.add(x, by.negative) : t.multiply(by.negative, t.exp(t.multiply(x, by.input)));
    return t.multiply(g, either(t, t.step(x), by.positive, t.multiply(by.input, below)));
  }));
}
// slope + (1 - slope) [x > 0], by which a leaky relu multiplies x and a gradient.
Element leak(Terms& t, Element x, Element slope) { return either(t, t.step(x), t.one(), slope); }
Results leaky_relu(const Call& c) {
  const Element slope = c.terms().number(c.number(1, 0.01));
  return of_one(c, [&](Terms& t, Element x) { return t.multiply(x, leak(t, x, slope)); });
}
// A result has x's sign, unless the slope is negative. Then which piece it is on is not seen.
Results leaky_relu_backward(const Call& c) {
  const double slope = c.number(2, 0.01);
  const bool is_result = c.flag(3, false);
  if (is_result && slope < 0) throw Unprovable("a negative slope, of the result");
  return of_two(c, [&](Terms& t, Element g, Element x) {
    return t.multiply(g, leak(t, x, t.number(slope)));
  });
}
Results prelu(const Call& c) {
  return of_two(c, [](Terms& t, Element x, Element w) { return t.multiply(x, leak(t, x, w)); });
}
// Of x, and of the weight at each place: g x where x is below 0.
Results prelu_backward(const Call& c) {
  Terms& t = c.terms();
  const Array all[] = {c.array(0), c.array(1), c.array(2)};
  return several(
      each(all, [&](std::span<const Element> v) { return t.multiply(v[0], leak(t, v[1], v[2])); }),
      each(all, [&](std::span<const Element> v) {
        return t.multiply(v[0], t.multiply(v[1], beside_one(t, t.step(v[1]))));
      }));
}
// A leaky relu whose slope is drawn in training, and the middle of its bounds else.
Element middle_slope(const Call& c, size_t low, size_t training) {
  if (c.flag(training, false)) throw Unprovable("rrelu draws random slopes in training");
  return c.terms().number((c.number(low, 0.125) + c.number(low + 1, 1.0 / 3)) / 2);
}
Results random_relu(const Call& c) {
  const Element slope = middle_slope(c, 2, 4);
  c.pass_over(1);  // the noise, which is not drawn
  return of_one(c, [&](Terms& t, Element x) { return t.multiply(x, leak(t, x, slope)); });
}
Results random_relu_backward(const Call& c) {
  const Element slope = middle_slope(c, 3, 5);
  c.pass_over(2);
  c.pass_over(6);  // whether it is the result: of one sign with what went in
  return of_two(c,
                [&](Terms& t, Element g, Element x) { return t.multiply(g, leak(t, x, slope)); });
}
Results hardtanh(const Call& c) {
  const double low = c.number(1, -1), high = c.number(2, 1);
  return of_one(c, [&](Terms& t, Element x) {
    return least(t, greatest_of(t, x, t.number(low)), t.number(high));
  });
}
Results hardtanh_backward(const Call& c) {
  const double low = c.number(2, -1), high = c.number(3, 1);
  return of_two(c, [&](Terms& t, Element g, Element x) {
    return t.multiply(g, between(t, x, t.number(low), t.number(high)));
  });
}
// min(max(x + 3, 0), 6) / 6
Element hard_sigmoid_of(Terms& t, Element x) {
  const Element shifted = t.add(x, t.rational(3));
  return t.scaled(least(t, greatest_of(t, shifted, t.zero()), t.rational(6)), Rational(1, 6));
}
Results hardsigmoid(const Call& c) { return of_one(c, hard_sigmoid_of); }
Results hardsigmoid_backward(const Call& c) {
  return of_two(c, [](Terms& t, Element g, Element x) {
    return t.scaled(t.multiply(g, between(t, x, t.rational(-3), t.rational(3))), Rational(1, 6));
  });
}
Results hardswish(const Call& c) {
  return of_one(c, [](Terms& t, Element x) { return t.multiply(x, hard_sigmoid_of(t, x)); });
}
// 0 up to -3, then x / 3 + 1/2, and 1 from 3.
Results hardswish_backward(const Call& c) {
  return of_two(c, [](Terms& t, Element g, Element x) {
    const Element inside = t.add(t.scaled(x, Rational(1, 3)), t.rational(Rational(1, 2)));
    const Element below_three = t.less(x, t.rational(3));
    const Element upper = either(t, below_three, inside, t.one());
    return t.multiply(g, t.multiply(t.less(t.rational(-3), x), upper));
  });
}
// log(1 + exp(beta x)) / beta. Above the threshold ATen rounds it to x: exact to a float's digits.
// A lower threshold would be another function.
struct Soft {
  Element beta;
};
Soft soft_scale(const Call& c, size_t first) {
  const double beta = c.number(first, 1), limit = c.number(first + 1, 20);
  if (limit < 20) throw Unprovable("a softplus that is cut below 20");
  return {c.terms().number(beta)};
}
Results softplus(const Call& c) {
  const Soft by = soft_scale(c, 1);
  return of_one(c, [&](Terms& t, Element x) {
    return t.divide(softplus_of(t, t.multiply(x, by.beta)), by.beta);
  });
}
Results softplus_backward(const Call& c) {
  const Soft by = soft_scale(c, 2);
  return of_two(c, [&](Terms& t, Element g, Element x) {
    return t.multiply(g, t.sigmoid(t.multiply(x, by.beta)));
  });
}
// -log(1 + exp(-x))
Results log_sigmoid(const Call& c) {
  Results r =
      of_one(c, [](Terms& t, Element x) { return negative(t, softplus_of(t, negative(t, x))); });
  r.emplace_back(std::nullopt);  // a buffer of its own
  return r;
}
Results log_sigmoid_backward(const Call& c) {
  c.pass_over(2);
  return of_two(
      c, [](Terms& t, Element g, Element x) { return t.multiply(g, t.sigmoid(negative(t, x))); });
}
// x tanh(log(1 + exp x))
Element tanh_of_softplus(Terms& t, Element x) {
  return t.function(Function::tanh, {softplus_of(t, x)});
}
Results mish(const Call& c) {
  return of_one(c, [](Terms& t, Element x) { return t.multiply(x, tanh_of_softplus(t, x)); });
}
Results mish_backward(const Call& c) {
  return of_two(c, [](Terms& t, Element g, Element x) {
    const Element y = tanh_of_softplus(t, x);
    const Element slope = t.multiply(beside_one(t, t.multiply(y, y)), t.sigmoid(x));
    return t.multiply(g, t.add(y, t.multiply(x, slope)));
  });
}
// The first half times the sigmoid of the second.
Results glu(const Call& c) {
  Terms& t = c.terms();
  const Array x = c.array(0);
  const size_t dim = dimension(c.whole(1, -1), x.dims());
  const int64_t half = x.shape[dim] / 2;
  return just(each(slice(x, dim, 0, half), slice(x, dim, half, 2 * half),
                   [&](Element a, Element b) { return t.multiply(a, t.sigmoid(b)); }));
}
// Of both halves a and b, side by side: g s(b), and g a s(b) (1 - s(b)).
Results glu_backward(const Call& c) {
  Terms& t = c.terms();
  const Array x = c.array(1);
  const size_t dim = dimension(c.whole(2, -1), x.dims());
  const int64_t half = x.shape[dim] / 2;
  const Array all[] = {c.array(0), slice(x, dim, 0, half), slice(x, dim, half, 2 * half)};
  const Array both[] = {
      each(all, [&](std::span<const Element> v) { return t.multiply(v[0], t.sigmoid(v[2])); }),
      each(all, [&](std::span<const Element> v) {
        const Element s = t.sigmoid(v[2]);
        return t.multiply(t.multiply(v[0], v[1]), t.multiply(s, beside_one(t, s)));
      })};
  return just(concatenated(both, dim));
}
// x - limit above it, x + limit below its negative, else 0.
Results softshrink(const Call& c) {
  const Element limit = c.terms().number(c.number(1, 0.5));
  return of_one(c, [&](Terms& t, Element x) {
    return t.subtract(t.relu(t.subtract(x, limit)), t.relu(t.subtract(negative(t, x), limit)));
  });
}
// Outside -limit to limit, which is not negative.
Element outside(Terms& t, Element x, Element limit) {
  if (t.constant(limit).value_or(Rational(1)).numerator() < 0)
    throw Unprovable("a shrinking by less than nothing");
  return t.add(t.less(limit, x), t.less(x, negative(t, limit)));
}
// Of both shrinkings: the gradient goes on where x is outside of the limits.
Results shrink_backward(const Call& c) {
  const Element limit = c.terms().number(c.number(2, 0.5));
  return of_two(
      c, [&](Terms& t, Element g, Element x) { return t.multiply(g, outside(t, x, limit)); });
}
Results hardshrink(const Call& c) {
  const Element limit = c.terms().number(c.number(1, 0.5));
  return of_one(c, [&](Terms& t, Element x) { return t.multiply(x, outside(t, x, limit)); });
}

}  // namespace

std::vector<OperatorEntry> activation_operators() {
  return {{"sigmoid", sigmoid},
          {"sigmoid_backward", sigmoid_backward},
          {"tanh_backward", tanh_backward},
          {"silu", silu},
          {"silu_backward", silu_backward},
          {"relu", relu},
          {"threshold", threshold},
          {"threshold_backward", threshold_backward},
          {"gelu", gelu},
          {"gelu_backward", gelu_backward},
          {"elu", elu},
          {"celu", celu},
          {"elu_backward", elu_backward},
          {"leaky_relu", leaky_relu},
          {"leaky_relu_backward", leaky_relu_backward},
          {"_prelu_kernel", prelu},
          {"_prelu_kernel_backward", prelu_backward},
          {"rrelu_with_noise", random_relu},
          {"rrelu_with_noise_backward", random_relu_backward},
          {"hardtanh", hardtanh},
          {"hardtanh_backward", hardtanh_backward},
          {"hardsigmoid", hardsigmoid},
          {"hardsigmoid_backward", hardsigmoid_backward},
          {"hardswish", hardswish},
          {"hardswish_backward", hardswish_backward},
          {"softplus", softplus},
          {"softplus_backward", softplus_backward},
          {"log_sigmoid_forward", log_sigmoid},
          {"log_sigmoid_backward", log_sigmoid_backward},
          {"mish", mish},
          {"mish_backward", mish_backward},
          {"glu", glu},
          {"glu_backward", glu_backward},
          {"softshrink", softshrink},
          {"softshrink_backward", shrink_backward},
          {"hardshrink", hardshrink},
          {"hardshrink_backward", shrink_backward}};
}

}  // namespace opguard::proving
