// Fused steps of optimizers, and the scale of a loss. They write lists of tensors in place.
//
//   Adam, step k   m = m + (1 - b1) (g - m)      v = b2 v + (1 - b2) g^2
//                  p = p - lr / (1 - b1^k) * m / (sqrt(v) / sqrt(1 - b2^k) + eps)
//   SGD            buffer = momentum buffer + (1 - dampening) g,  p = p - lr buffer
//   Adagrad        sum = sum + g^2,  p = p - lr / (1 + (k - 1) decay) * g / (sqrt(sum) + eps)
//
// A step's number has to be known: 1 - b1^k is a number, not a term. Weight decay comes before:
// AdamW's shrinks p, the others' is added to g.
//
// Counterexample: a step that is left out where a gradient is not finite. Reals are finite, so it
// never is, and a found_inf that may be set is Unprovable.
#include <cmath>

#include "prove/meanings.h"

namespace opguard::proving {
namespace {

// A list of the step's tensors, its entries read and written by number.
struct Entries {
  const Call& c;
  std::vector<Tensor> tensors;
  Entries(const Call& call, size_t i) : c(call), tensors(call.tensors(i)) {}
  Array read(size_t n) const { return c.rank().read(tensors.at(n)); }
  void write(size_t n, const Array& a) const { c.rank().write(tensors.at(n), a); }
};
// A rate may be a number, or a tensor of one. Both come by name.
// A rate may be a number, or a tensor of one. Both come by name.
Element number_or_tensor(const Call& c, const char* name) {
  const Array a = c.array(99, name);
  if (a.at.size() != 1) throw Unprovable("more than one number");
  return a.at[0];
}
// What a gradient is before the step: without its scale, and with the sign that is asked for.
Array ready(const Call& c, const Entries& gradients, size_t n) {
  Terms& t = c.terms();
  Array g = gradients.read(n);
  if (const auto scale = c.array_if_given(99, "grad_scale")) {
    g = each(g, *scale, [&](Element x, Element s) { return t.divide(x, s); });
    gradients.write(n, g);
  }
  if (const auto found = c.array_if_given(99, "found_inf"))
    for (Element e : found->at)
      if (e != t.zero()) throw Unprovable("a step that may be left out");
  return c.flag(99, false, "maximize") ? each(g, [&](Element x) { return negative(t, x); }) : g;
}
// a + by * b
// a + by * b
Array plus_scaled(Terms& t, const Array& a, Element by, const Array& b) {
  return each(a, b, [&](Element x, Element y) { return t.add(x, t.multiply(by, y)); });
}
int64_t step_number(const Call& c, const Entries& steps, size_t n) {
  const auto step = c.terms().constant(steps.read(n).at.at(0));
  if (!step || !step->whole()) throw Unprovable("a step of an unknown number");
  return step->numerator();
}
// What stands beside the moments is computed as float64, as the step in Python does. So a fused
// step and one that is not have one number: 1 - 0.9 is no tenth in either.
double float_of(Terms& t, Element e) {
  const auto exact = t.constant(e);
  if (!exact) throw Unprovable("a rate or a decay that is not known");
  return exact->value();
}
template <bool kDecoupled>  // AdamW: the decay is of the parameter, not of the gradient
Results adam(const Call& c) {
  Terms& t = c.terms();
  const Entries p(c, 0), g(c, 1), first(c, 2), second(c, 3), greatest(c, 4), steps(c, 5);
  const Element lr = number_or_tensor(c, "lr"), beta1 = number_or_tensor(c, "beta1"),
                beta2 = number_or_tensor(c, "beta2"), decay = number_or_tensor(c, "weight_decay"),
                eps = number_or_tensor(c, "eps");
  const bool amsgrad = c.flag(99, false, "amsgrad");
  const double decay1 = float_of(t, beta1), decay2 = float_of(t, beta2);
  const Element new1 = t.number(1 - decay1), new2 = t.number(1 - decay2);
  for (size_t n = 0; n < p.tensors.size(); ++n) {
    Array x = p.read(n), gradient = ready(c, g, n);
    const int64_t step = step_number(c, steps, n);
    if (kDecoupled)
      x = each(
          x, [&](Element e) { return t.multiply(e, t.subtract(t.one(), t.multiply(lr, decay))); });
    else
      gradient = plus_scaled(t, gradient, decay, x);
    const Array m = each(first.read(n), gradient, [&](Element x0, Element x1) {
      return t.add(x0, t.multiply(new1, t.subtract(x1, x0)));
    });
    const Array v = each(second.read(n), gradient, [&](Element x0, Element x1) {
      return t.add(t.multiply(beta2, x0), t.multiply(new2, t.multiply(x1, x1)));
    });
    first.write(n, m);
    second.write(n, v);
    Array under = second.read(n);
    if (amsgrad) {
      greatest.write(n, each(greatest.read(n), under,
                             [&](Element a, Element b) { return greatest_of(t, a, b); }));
      under = greatest.read(n);
    }
    const auto at = static_cast<double>(step);
    const Element root = t.number(std::sqrt(1 - std::pow(decay2, at))),
                  size = t.number(float_of(t, lr) / (1 - std::pow(decay1, at)));
    const Array all[] = {x, first.read(n), under};
    p.write(n, each(all, [&](std::span<const Element> e) {
              const Element below = t.add(t.divide(t.power(e[2], Rational(1, 2)), root), eps);
              return t.subtract(e[0], t.multiply(size, t.divide(e[1], below)));
            }));
  }
  return {};
}
// In the first step the buffer is the gradient itself: it held nothing. Nesterov's goes momentum *
// buffer further.
// In the first step the buffer is the gradient itself: it held nothing. Nesterov's step is by g +
// momentum buffer.
Results sgd(const Call& c) {
  Terms& t = c.terms();
  const Entries p(c, 0), g(c, 1), buffers(c, 2);
  const Element lr = number_or_tensor(c, "lr"), decay = number_or_tensor(c, "weight_decay"),
                momentum = number_or_tensor(c, "momentum"),
                kept = t.subtract(t.one(), number_or_tensor(c, "dampening"));
  const bool nesterov = c.flag(99, false, "nesterov"), first = c.flag(99, false, "is_first_step");
  for (size_t n = 0; n < p.tensors.size(); ++n) {
    const Array x = p.read(n);
    Array gradient = plus_scaled(t, ready(c, g, n), decay, x);
    if (momentum != t.zero()) {
      buffers.write(n,
                    first ? gradient : each(buffers.read(n), gradient, [&](Element b, Element e) {
                      return t.add(t.multiply(momentum, b), t.multiply(kept, e));
                    }));
      const Array buffer = buffers.read(n);
      gradient = nesterov ? plus_scaled(t, gradient, momentum, buffer) : buffer;
    }
    p.write(n, plus_scaled(t, x, negative(t, lr), gradient));
  }
  return {};
}
Results adagrad(const Call& c) {
  Terms& t = c.terms();
  const Entries p(c, 0), g(c, 1), sums(c, 2), steps(c, 3);
  const Element lr = number_or_tensor(c, "lr"), lr_decay = number_or_tensor(c, "lr_decay"),
                decay = number_or_tensor(c, "weight_decay"), eps = number_or_tensor(c, "eps");
  for (size_t n = 0; n < p.tensors.size(); ++n) {
    const Array x = p.read(n), gradient = plus_scaled(t, ready(c, g, n), decay, x);
    const Element before = t.rational(step_number(c, steps, n) - 1);
    const Element rate = t.divide(lr, t.add(t.one(), t.multiply(before, lr_decay)));
    sums.write(n, plus(t, sums.read(n), times(t, gradient, gradient)));
    const Array all[] = {x, gradient, sums.read(n)};
    p.write(n, each(all, [&](std::span<const Element> e) {
              const Element below = t.add(t.power(e[2], Rational(1, 2)), eps);
              return t.subtract(e[0], t.multiply(rate, t.divide(e[1], below)));
            }));
  }
  return {};
}
// Gradients times the inverse of the loss's scale. Real numbers do not overflow: found_inf stays
// what it was.
Results unscaled(const Call& c) {
  Terms& t = c.terms();
  const Entries gradients(c, 0);
  c.pass_over(1);
  const Array inverse = c.array(2);
  for (size_t n = 0; n < gradients.tensors.size(); ++n)
    gradients.write(n, times(t, gradients.read(n), inverse));
  return {};
}
// Without an overflow the scale grows after so many steps.
Results updated_scale(const Call& c) {
  Terms& t = c.terms();
  const Array scale = c.array(0), tracker = c.array(1), found = c.array(2);
  c.pass_over(4);  // by which it shrinks
  const auto before = t.constant(tracker.at.at(0));
  if (found.at.at(0) != t.zero() || !before) throw Unprovable("whether a loss scale shrinks");
  const bool grows = before->numerator() + 1 == c.whole(5, 0);
  const Element factor = grows ? t.number(c.number(3, 1)) : t.one();
  c.pass_over(3);
  c.rank().write(c.tensor(1), Array::scalar(grows ? t.zero() : t.add(tracker.at[0], t.one())));
  return just(each(scale, [&](Element e) { return t.multiply(e, factor); }));
}

}  // namespace

std::vector<OperatorEntry> optimizer_operators() {
  return {{"_fused_adam_", adam<false>},
          {"_fused_adamw_", adam<true>},
          {"_fused_sgd_", sgd},
          {"_fused_adagrad_", adagrad},
          {"_amp_foreach_non_finite_check_and_unscale_", unscaled},
          {"_amp_update_scale_", updated_scale}};
}

}  // namespace opguard::proving
