// Losses with their gradients.
//
//   nll_loss of x, of a target t below 3     -(x2 + [t = 0] (x0 - x2) + [t = 1] (x1 - x2))
//   mean of two such, without weights        their sum / 2
//
// So a cross entropy is proved for all targets. The divisor of its mean is the sum of the targets'
// weights, of which an ignored target has 0. It is a result of its own, which the gradient takes.
//
// Gradients are ATen's formulas, not derived from the loss. That the two belong together, `opguard
// prove --rules` shows on numbers.
//
// Counterexample: a binary cross entropy keeps ATen's cuts, logarithms at -100 and a denominator at
// 1e-12. They are part of the function.
#include "prove/meanings.h"

namespace opguard::proving {
namespace {

// Of each target: whether it counts, its class's weight, and its loss: -weight * x[target].
struct Picked {
  Array rows;  // x with its classes last
  std::vector<Element> weight, loss;
};
// x [classes], [batch, classes] or [batch, classes, height, width].
std::vector<size_t> classes_last(const Array& x) {
  std::vector<size_t> order;
  const size_t at = x.dims() > 1 ? 1 : 0;
  for (size_t d = 0; d < x.dims(); ++d)
    if (d != at) order.push_back(d);
  order.push_back(at);
  return order;
}
// The order that leads back.
std::vector<size_t> undone(const std::vector<size_t>& order) {
  std::vector<size_t> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[order[i]] = i;
  return back;
}
Element weight_of_class(Terms& t, const std::optional<Array>& weights, int64_t v) {
  return weights ? weights->at.at(static_cast<size_t>(v)) : t.one();
}
// Of an ignored target the weight and the loss are 0. Any other outside of the classes is
// Unprovable.
Picked picked(const Call& c, const Array& x, const Array& target,
              const std::optional<Array>& weights, int64_t ignored) {
  Terms& t = c.terms();
  Picked found{permuted(x, classes_last(x)), {}, {}};
  const auto classes = static_cast<size_t>(found.rows.shape.back());
  for (size_t n = 0; n < target.at.size(); ++n) {
    const auto of_target = [&](const std::function<Element(int64_t)>& f) {
      return t.look_up(target.at[n], [&](int64_t v) {
        if (v == ignored) return t.zero();
        if (v < 0 || v >= static_cast<int64_t>(classes))
          throw Unprovable("a target outside its classes");
        return f(v);
      });
    };
    found.weight.push_back(of_target([&](int64_t v) { return weight_of_class(t, weights, v); }));
    found.loss.push_back(of_target([&](int64_t v) {
      const Element e = found.rows.at[n * classes + static_cast<size_t>(v)];
      return negative(t, t.multiply(weight_of_class(t, weights, v), e));
    }));
  }
  return found;
}
Results nll_loss(const Call& c) {
  Terms& t = c.terms();
  const Array target = c.array(1);
  const Reduction reduction = reduction_of(c, 3);
  const Picked p = picked(c, c.array(0), target, c.array_if_given(2), c.whole(4, -100));
  Results r;
  if (reduction == Reduction::none) {
    r.emplace_back(Array{target.shape, p.loss});
    r.emplace_back(std::nullopt);  // no weight: nobody divides by it
    return r;
  }
  const Element weight = total_of(t, p.weight), total = total_of(t, p.loss);
  r.emplace_back(Array::scalar(reduction == Reduction::mean ? t.divide(total, weight) : total));
  r.emplace_back(Array::scalar(weight));
  return r;
}
// -g weight [target = v] for each class v, divided by the total weight of a mean. g is one number,
// or one for each target.
Results nll_loss_backward(const Call& c) {
  Terms& t = c.terms();
  const Array g = c.array(0), x = c.array(1), target = c.array(2);
  const auto weights = c.array_if_given(3);
  const Reduction reduction = reduction_of(c, 4);
  const int64_t ignored = c.whole(5, -100);
  c.pass_over(6);
  const std::vector<size_t> order = classes_last(x);
  Array result = permuted(x, order);
  const auto classes = static_cast<size_t>(result.shape.back());
  for (size_t n = 0; n < target.at.size(); ++n) {
    Element here = negative(t, g.at[g.at.size() > 1 ? n : 0]);
    if (reduction == Reduction::mean) here = t.divide(here, c.array(6).at[0]);
    for (size_t v = 0; v < classes; ++v) {
      const auto value = static_cast<int64_t>(v);
      const Element hit = value == ignored ? t.zero() : is_value(t, target.at[n], value);
      const Element weighted = t.multiply(here, weight_of_class(t, weights, value));
      result.at[n * classes + v] = t.where(hit, weighted, t.zero());
    }
  }
  return just(permuted(result, undone(order)));
}

// A loss of each pair, and its slope in the first: f(x, y).
template <typename F>
Results paired_loss(const Call& c, Reduction reduction, F f) {
  return reduced_loss(c.terms(), each(c.array(0), c.array(1), f), reduction);
}
template <typename F>
Results paired_loss_backward(const Call& c, Reduction reduction, F slope) {
  Terms& t = c.terms();
  const Array all[] = {c.array(0), c.array(1), c.array(2)};
  const size_t count = all[1].at.size();
  return just(each(all, [&](std::span<const Element> v) {
    return loss_share(t, t.multiply(v[0], slope(v[1], v[2])), count, reduction);
  }));
}
Results mse_loss(const Call& c) {
  Terms& t = c.terms();
  return paired_loss(c, reduction_of(c, 2),
                     [&](Element x, Element y) { return t.power(t.subtract(x, y), Rational(2)); });
}
Results mse_loss_backward(const Call& c) {
  Terms& t = c.terms();
  return paired_loss_backward(c, reduction_of(c, 3), [&](Element x, Element y) {
    return t.scaled(t.subtract(x, y), Rational(2));
  });
}
// A square with a width, and lines outside of it: smooth_l1 and huber. With d = x - y:
//   smooth_l1   |d| < width: d^2 / (2 width), else |d| - width / 2
//   huber       |d| < width: d^2 / 2, else width (|d| - width / 2)
struct Corner {
  double width;
  bool scaled_outside;  // huber: delta * (|d| - delta / 2); else d^2 / (2 width) inside
};
Element corner_loss(Terms& t, Element d, const Corner& by) {
  const Element z = t.absolute(d);
  if (by.width == 0) return z;
  const Element width = t.number(by.width), half = t.rational(Rational(1, 2));
  const Element square = t.multiply(half, t.multiply(d, d));
  const Element line = t.subtract(z, t.multiply(half, width));
  const Element inside = by.scaled_outside ? square : t.divide(square, width);
  const Element outside = by.scaled_outside ? t.multiply(width, line) : line;
  return t.add(outside, t.multiply(t.less(z, width), t.subtract(inside, outside)));
}
// The slope is the difference itself, kept between -width and width. A smooth_l1 of width 0 is |d|,
// with d's sign.
Element corner_slope(Terms& t, Element d, const Corner& by) {
  if (by.width == 0) return t.sign(d);
  const Element width = t.number(by.width);
  const Element kept = least(t, greatest_of(t, d, negative(t, width)), width);
  return by.scaled_outside ? kept : t.divide(kept, width);
}
template <bool kHuber>
Results corner(const Call& c) {
  Terms& t = c.terms();
  const Corner by{c.number(3, 1), kHuber};
  return paired_loss(c, reduction_of(c, 2),
                     [&](Element x, Element y) { return corner_loss(t, t.subtract(x, y), by); });
}
template <bool kHuber>
Results corner_backward(const Call& c) {
  Terms& t = c.terms();
  const Corner by{c.number(4, 1), kHuber};
  return paired_loss_backward(c, reduction_of(c, 3), [&](Element x, Element y) {
    return corner_slope(t, t.subtract(x, y), by);
  });
}
// log(1 + exp(-y x))
Results soft_margin_loss(const Call& c) {
  Terms& t = c.terms();
  return paired_loss(c, reduction_of(c, 2), [&](Element x, Element y) {
    return t.log(t.add(t.one(), t.exp(negative(t, t.multiply(x, y)))));
  });
}
Results soft_margin_loss_backward(const Call& c) {
  Terms& t = c.terms();
  return paired_loss_backward(c, reduction_of(c, 3), [&](Element x, Element y) {
    return negative(t, t.multiply(y, t.sigmoid(negative(t, t.multiply(x, y)))));
  });
}
// -(y log x + (1 - y) log(1 - x)), each logarithm at least -100 as ATen has it.
Results cross_entropy_of_two(const Call& c) {
  Terms& t = c.terms();
  const Element bound = t.rational(-100);
  const Array all[] = {c.array(0), c.array(1),
                       c.array_if_given(2).value_or(Array::scalar(t.one()))};
  const auto log_of = [&](Element x) { return greatest_of(t, t.log(x), bound); };
  const Array losses = each(all, [&](std::span<const Element> v) {
    const Element first = t.multiply(v[1], log_of(v[0])), rest = t.subtract(t.one(), v[1]);
    // Of a target of 0 or 1 one logarithm alone.
    const Element second =
        rest == t.zero() ? rest : t.multiply(rest, log_of(t.subtract(t.one(), v[0])));
    return negative(t, t.multiply(v[2], t.add(first, second)));
  });
  return reduced_loss(t, losses, reduction_of(c, 3));
}
// g w (x - y) / max(x (1 - x), 1e-12)
Results cross_entropy_of_two_backward(const Call& c) {
  Terms& t = c.terms();
  const Array all[] = {c.array(0), c.array(1), c.array(2),
                       c.array_if_given(3).value_or(Array::scalar(t.one()))};
  const Reduction reduction = reduction_of(c, 4);
  const size_t count = all[1].at.size();
  return just(each(all, [&](std::span<const Element> v) {
    const Element under =
        greatest_of(t, t.multiply(v[1], t.subtract(t.one(), v[1])), t.number(1e-12));
    const Element slope = t.divide(t.subtract(v[1], v[2]), under);
    return loss_share(t, t.multiply(t.multiply(v[0], v[3]), slope), count, reduction);
  }));
}
// w ((1 - y) x + (1 + (p - 1) y) log(1 + exp(-x)))
Results cross_entropy_of_logits(const Call& c) {
  Terms& t = c.terms();
  const Array one = Array::scalar(t.one());
  const Array all[] = {c.array(0), c.array(1), c.array_if_given(2).value_or(one),
                       c.array_if_given(3).value_or(one)};
  const Array losses = each(all, [&](std::span<const Element> v) {
    const Element soft = t.log(t.add(t.one(), t.exp(negative(t, v[0]))));
    const Element by = t.add(t.one(), t.multiply(t.subtract(v[3], t.one()), v[1]));
    const Element line = t.multiply(t.subtract(t.one(), v[1]), v[0]);
    return t.multiply(v[2], t.add(line, t.multiply(by, soft)));
  });
  return reduced_loss(t, losses, reduction_of(c, 4));
}

}  // namespace

std::vector<OperatorEntry> loss_operators() {
  return {{"nll_loss_forward", nll_loss},
          {"nll_loss_backward", nll_loss_backward},
          {"nll_loss2d_forward", nll_loss},
          {"nll_loss2d_backward", nll_loss_backward},
          {"mse_loss", mse_loss},
          {"mse_loss_backward", mse_loss_backward},
          {"smooth_l1_loss", corner<false>},
          {"smooth_l1_loss_backward", corner_backward<false>},
          {"huber_loss", corner<true>},
          {"huber_loss_backward", corner_backward<true>},
          {"soft_margin_loss", soft_margin_loss},
          {"soft_margin_loss_backward", soft_margin_loss_backward},
          {"binary_cross_entropy", cross_entropy_of_two},
          {"binary_cross_entropy_backward", cross_entropy_of_two_backward},
          {"binary_cross_entropy_with_logits", cross_entropy_of_logits}};
}

}  // namespace opguard::proving
