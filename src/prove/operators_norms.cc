// Normalisation: of layers, groups, batches and weights.
//
// All of the first three are one: elements in groups, each group with a mean and an inverse of its
// deviation. A layer's groups are its rows, a batch's its channels.
//
//   x of [2, 3], layer_norm over 3      element n is in group n / 3, channel n % 3
//   x of [2, 3], batch_norm             element n is in group and channel n % 3
//
//   y = (x - mean) inverse weight + bias,   inverse = (variance + eps)^(-1/2)
//
// Counterexample: the variance is a mean of squares, by n. Only the one that batch norm keeps for
// later is a sample's, by n - 1.
#include "prove/meanings.h"

namespace opguard::proving {
namespace {

using GroupOf = std::function<size_t(size_t)>;  // of an element's place

struct Statistics {
  std::vector<Element> mean, variance;
};
Statistics statistics_of(Terms& t, const Array& x, size_t groups, const GroupOf& group) {
  std::vector<std::vector<Element>> in(groups);
  for (size_t n = 0; n < x.at.size(); ++n) in[group(n)].push_back(x.at[n]);
  Statistics found;
  for (const auto& list : in) {
    const Element middle = mean_of(t, list);
    std::vector<Element> squares;
    for (Element e : list) squares.push_back(t.power(t.subtract(e, middle), Rational(2)));
    found.mean.push_back(middle);
    found.variance.push_back(mean_of(t, squares));
  }
  return found;
}
// (variance + eps)^(-1/2)
// (variance + eps)^(-1/2)
std::vector<Element> inverses_of(Terms& t, const std::vector<Element>& variance, Element eps) {
  std::vector<Element> found;
  for (Element v : variance) found.push_back(t.power(t.add(v, eps), Rational(-1, 2)));
  return found;
}
// Weights and biases, one for each channel; 1 and 0 where they are not given.
struct Affine {
  std::optional<Array> weight, bias;
  GroupOf channel;
  Element weight_at(Terms& t, size_t n) const {
    return weight ? weight->at.at(channel(n)) : t.one();
  }
  Element bias_at(Terms& t, size_t n) const { return bias ? bias->at.at(channel(n)) : t.zero(); }
};
Array normalised(Terms& t, const Array& x, const std::vector<Element>& mean,
                 const std::vector<Element>& inverse, const GroupOf& group, const Affine& by) {
  Array y{x.shape, {}};
  for (size_t n = 0; n < x.at.size(); ++n) {
    const Element unit = t.multiply(t.subtract(x.at[n], mean[group(n)]), inverse[group(n)]);
    y.at.push_back(t.add(t.multiply(unit, by.weight_at(t, n)), by.bias_at(t, n)));
  }
  return y;
}
// What a gradient makes of the elements, the weights and the biases. With gw = g * weight and means
// over a group:
//   fixed statistics    dx = inverse gw
//   else                dx = inverse (gw - mean(gw) - unit mean(gw unit))
//   weights, biases     the sums of g unit, and of g, over each channel
Results normalised_backward(Terms& t, const Array& g, const Array& x,
                            const std::vector<Element>& mean, const std::vector<Element>& inverse,
                            const GroupOf& group, const Affine& by, size_t channels, bool fixed) {
  const size_t count = x.at.size();
  std::vector<Element> unit, weighted;
  std::vector<std::vector<Element>> gradients(mean.size()), products(mean.size()), dw(channels),
      db(channels);
  for (size_t n = 0; n < count; ++n) {
    const size_t s = group(n);
    unit.push_back(t.multiply(t.subtract(x.at[n], mean[s]), inverse[s]));
    weighted.push_back(t.multiply(g.at[n], by.weight_at(t, n)));
    gradients[s].push_back(weighted[n]);
    products[s].push_back(t.multiply(weighted[n], unit[n]));
    dw[by.channel(n)].push_back(t.multiply(g.at[n], unit[n]));
    db[by.channel(n)].push_back(g.at[n]);
  }
  std::vector<Element> first, second;
  for (size_t s = 0; s < mean.size() && !fixed; ++s) {
    first.push_back(mean_of(t, gradients[s]));
    second.push_back(mean_of(t, products[s]));
  }
  Array dx{x.shape, {}}, w{{static_cast<int64_t>(channels)}, {}}, b = w;
  for (size_t n = 0; n < count; ++n) {
    const size_t s = group(n);
    const Element inside =
        fixed ? weighted[n]
              : t.subtract(t.subtract(weighted[n], first[s]), t.multiply(unit[n], second[s]));
    dx.at.push_back(t.multiply(inverse[s], inside));
  }
  for (size_t k = 0; k < channels; ++k) {
    w.at.push_back(total_of(t, dw[k]));
    b.at.push_back(total_of(t, db[k]));
  }
  return several(std::move(dx), std::move(w), std::move(b));
}
// Elements in the dimensions from `from` on.
// Elements in the dimensions from `from` on.
size_t length_of(const Array& x, size_t from) {
  size_t length = 1;
  for (size_t d = from; d < x.dims(); ++d) length *= static_cast<size_t>(x.shape[d]);
  return length;
}

// ---- Layers: rows of the last dimensions

// [2, 3, 4] normalised over the last one: [2, 3, 1].
// [2, 3, 4] normalised over the last one: [2, 3, 1].
Shape statistics_shape(const Array& x, size_t normal_dims) {
  Shape shape = x.shape;
  for (size_t i = 0; i < normal_dims; ++i) shape[shape.size() - 1 - i] = 1;
  return shape;
}
Results layer_norm(const Call& c) {
  Terms& t = c.terms();
  const Array x = c.array(0);
  const std::vector<int64_t> normal = c.list(1);
  const auto length = static_cast<size_t>(size_of(normal));
  const Affine by{c.array_if_given(2), c.array_if_given(3), [=](size_t n) { return n % length; }};
  const auto row = [=](size_t n) { return n / length; };
  const Statistics s = statistics_of(t, x, x.at.size() / length, row);
  const std::vector<Element> inverse = inverses_of(t, s.variance, t.number(c.number(4, 1e-5)));
  const Shape small = statistics_shape(x, normal.size());
  return several(normalised(t, x, s.mean, inverse, row, by), Array{small, s.mean},
                 Array{small, inverse});
}
Results layer_norm_backward(const Call& c) {
  Terms& t = c.terms();
  const Array x = c.array(1);
  const std::vector<int64_t> normal = c.list(2);
  const auto length = static_cast<size_t>(size_of(normal));
  const Affine by{c.array_if_given(5), {}, [=](size_t n) { return n % length; }};
  c.pass_over(6);
  c.pass_over(7);  // results that are not asked for are null
  Results r = normalised_backward(
      t, c.array(0), x, c.array(3).at, c.array(4).at, [=](size_t n) { return n / length; }, by,
      length, false);
  for (size_t i : {1, 2}) r[i]->shape = normal;
  return r;
}
// ---- Groups of channels: [batch, channels, ...]

struct Grouping {
  size_t groups, channels, inner;  // of one batch; inner: elements of a channel
  GroupOf group() const {
    const size_t length = channels / groups * inner;
    return [=](size_t n) { return n / length; };
  }
  GroupOf channel() const {
    const size_t i = inner, all = channels;
    return [=](size_t n) { return n / i % all; };
  }
};
Grouping grouping_of(const Call& c, size_t first) {
  c.pass_over(first);  // the batch, by the shape
  return {static_cast<size_t>(c.whole(first + 3, 1)), static_cast<size_t>(c.whole(first + 1, 1)),
          static_cast<size_t>(c.whole(first + 2, 1))};
}
Results group_norm(const Call& c) {
  Terms& t = c.terms();
  const Array x = c.array(0);
  const Grouping in = grouping_of(c, 3);
  const size_t count = x.at.size() / (in.channels * in.inner) * in.groups;
  const Affine by{c.array_if_given(1), c.array_if_given(2), in.channel()};
  const Statistics s = statistics_of(t, x, count, in.group());
  const std::vector<Element> inverse = inverses_of(t, s.variance, t.number(c.number(7, 1e-5)));
  const auto groups = static_cast<int64_t>(in.groups);
  const Shape small = {static_cast<int64_t>(count) / groups, groups};
  return several(normalised(t, x, s.mean, inverse, in.group(), by), Array{small, s.mean},
                 Array{small, inverse});
}
Results group_norm_backward(const Call& c) {
  const Grouping in = grouping_of(c, 5);
  const Affine by{c.array_if_given(4), {}, in.channel()};
  c.pass_over(9);
  return normalised_backward(c.terms(), c.array(0), c.array(1), c.array(2).at, c.array(3).at,
                             in.group(), by, in.channels, false);
}

// ---- Batches: each channel over all of them

// Where the arguments stand, which differ by operator. Behind the running mean stands the running
// variance, behind the momentum eps.
struct BatchNorm {
  std::optional<size_t> running, training;
  bool always_training;
  size_t momentum;
};
// In training by the batch's own statistics, which move the running ones: a write beside the
// results. Else by the running ones.
// In training by the batch's own statistics, which move the running ones: a write beside the
// results. Else by the running ones.
Results batch_norm_by(const Call& c, const BatchNorm& at) {
  Terms& t = c.terms();
  const Array x = c.array(0);
  const auto channels = static_cast<size_t>(x.shape.at(1));
  const size_t inner = length_of(x, 2), count = x.at.size() / channels;
  const GroupOf channel = [=](size_t n) { return n / inner % channels; };
  const Affine by{c.array_if_given(1), c.array_if_given(2), channel};
  const Element momentum = t.number(c.number(at.momentum, 0.1)),
                eps = t.number(c.number(at.momentum + 1, 1e-5));
  const bool training = at.training ? c.flag(*at.training, false) : at.always_training;
  const bool kept = at.running && c.given(*at.running);
  if (at.running) c.pass_over(*at.running + 1);
  if (!training) {
    if (!kept) throw Unprovable("statistics that were never kept");
    const std::vector<Element> inverse = inverses_of(t, c.array(*at.running + 1).at, eps);
    Results r = just(normalised(t, x, c.array(*at.running).at, inverse, channel, by));
    return r;
  }
  const Statistics s = statistics_of(t, x, channels, channel);
  const std::vector<Element> inverse = inverses_of(t, s.variance, eps);
  if (kept) {
    if (count < 2) throw Unprovable("a variance of one number");
    // Of what is kept the variance is that of a sample.
    const Rational sample(static_cast<int64_t>(count), static_cast<int64_t>(count) - 1);
    const auto moved = [&](size_t i, const std::vector<Element>& to, const Rational& factor) {
      Array a = c.array(i);
      for (size_t k = 0; k < channels; ++k)
        a.at[k] =
            t.add(a.at[k], t.multiply(momentum, t.subtract(t.scaled(to[k], factor), a.at[k])));
      c.rank().write(c.tensor(i), a);
    };
    moved(*at.running, s.mean, Rational(1));
    moved(*at.running + 1, s.variance, sample);
  }
  const Shape small = {static_cast<int64_t>(channels)};
  return several(normalised(t, x, s.mean, inverse, channel, by), Array{small, s.mean},
                 Array{small, inverse});
}
Results batch_norm(const Call& c) { return batch_norm_by(c, {3, 5, false, 6}); }
Results batch_norm_without_statistics(const Call& c) { return batch_norm_by(c, {{}, 3, false, 4}); }
Results batch_norm_of_training(const Call& c) { return batch_norm_by(c, {3, {}, true, 5}); }
Results batch_norm_of_running(const Call& c) { return batch_norm_by(c, {3, {}, false, 5}); }
// In training by the mean and the inverse that the forward operator kept, else by the running
// statistics.
// In training by the mean and the inverse that the forward operator kept, else by the running
// statistics.
Results batch_norm_backward(const Call& c) {
  Terms& t = c.terms();
  const Array x = c.array(1);
  const auto channels = static_cast<size_t>(x.shape.at(1));
  const size_t inner = length_of(x, 2);
  const GroupOf channel = [=](size_t n) { return n / inner % channels; };
  const Affine by{c.array_if_given(2), {}, channel};
  for (size_t i : {3, 4, 5, 6, 9}) c.pass_over(i);
  const bool training = c.flag(7, false);
  const Element eps = t.number(c.number(8, 1e-5));
  const std::vector<Element> mean = c.array(training ? 5 : 3).at;
  const std::vector<Element> inverse =
      training ? c.array(6).at : inverses_of(t, c.array(4).at, eps);
  return normalised_backward(t, c.array(0), x, mean, inverse, channel, by, channels, !training);
}

// ---- Weights as a direction and a length: v * (g / |v|), the norm over all but dim

struct Directions {
  GroupOf row;
  std::vector<std::vector<size_t>> places;
};
// The elements by their place along dim, which has to be the first or the last.
// The elements by their place along dim, which has to be the first or the last.
Directions directions_of(const Array& v, int64_t dim) {
  const size_t d = dimension(dim, v.dims());
  if (d != 0 && d + 1 != v.dims()) throw Unprovable("a norm of weights along an inner dimension");
  const size_t inner = length_of(v, d + 1);
  const auto rows = static_cast<size_t>(v.shape[d]);
  Directions found{[=](size_t n) { return n / inner % rows; }, {}};
  found.places.resize(rows);
  for (size_t n = 0; n < v.at.size(); ++n) found.places[found.row(n)].push_back(n);
  return found;
}
Results weight_norm(const Call& c) {
  Terms& t = c.terms();
  const Array v = c.array(0), g = c.array(1);
  const Directions in = directions_of(v, c.whole(2, 0));
  Array w{v.shape, {}}, norms{g.shape, {}};
  for (const auto& places : in.places) {
    std::vector<Element> squares;
    for (size_t n : places) squares.push_back(t.multiply(v.at[n], v.at[n]));
    norms.at.push_back(t.power(t.sum(squares), Rational(1, 2)));
  }
  for (size_t n = 0; n < v.at.size(); ++n)
    w.at.push_back(t.multiply(v.at[n], t.divide(g.at[in.row(n)], norms.at[in.row(n)])));
  return several(std::move(w), std::move(norms));
}
// dv = g / |v| (dw - v sum(dw v) / |v|^2); dg = sum(dw v) / |v|
Results weight_norm_backward(const Call& c) {
  Terms& t = c.terms();
  const Array dw = c.array(0), v = c.array(1), g = c.array(2), norms = c.array(3);
  const Directions in = directions_of(v, c.whole(4, 0));
  Array dv{v.shape, std::vector<Element>(v.at.size(), t.zero())}, dg{g.shape, {}};
  for (size_t row = 0; row < in.places.size(); ++row) {
    std::vector<Element> products;
    for (size_t n : in.places[row]) products.push_back(t.multiply(dw.at[n], v.at[n]));
    const Element sum = t.sum(products), norm = norms.at[row];
    dg.at.push_back(t.divide(sum, norm));
    const Element share = t.divide(sum, t.multiply(norm, norm));
    for (size_t n : in.places[row])
      dv.at[n] =
          t.multiply(t.divide(g.at[row], norm), t.subtract(dw.at[n], t.multiply(v.at[n], share)));
  }
  return several(std::move(dv), std::move(dg));
}

}  // namespace

std::vector<OperatorEntry> norm_operators() {
  return {{"native_layer_norm", layer_norm},
          {"native_layer_norm_backward", layer_norm_backward},
          {"native_group_norm", group_norm},
          {"native_group_norm_backward", group_norm_backward},
          {"native_batch_norm", batch_norm},
          {"_native_batch_norm_legit", batch_norm},
          {"_native_batch_norm_legit.no_stats", batch_norm_without_statistics},
          {"_native_batch_norm_legit_no_training", batch_norm_of_running},
          {"_batch_norm_with_update", batch_norm_of_training},
          {"_batch_norm_no_update", batch_norm_of_running},
          {"native_batch_norm_backward", batch_norm_backward},
          {"_weight_norm_interface", weight_norm},
          {"_weight_norm_interface_backward", weight_norm_backward}};
}

}  // namespace opguard::proving
