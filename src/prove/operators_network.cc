// Soft maxima, losses, norms of layers, attention, optimizers' fused steps.
#include <cmath>

#include "prove/operators.h"

namespace opguard::proving {
namespace {

Results only(Array a) {
  Results r;
  r.emplace_back(std::move(a));
  return r;
}

Array softmax_of(Terms& t, const Array& a, int64_t dim) {
  return along(a, dim, [&](std::span<const Element> x, std::span<Element> y) {
    std::vector<Element> e;
    for (Element v : x) e.push_back(t.exp(v));
    const Element inverse = t.power(t.sum(e), Rational(-1));
    for (size_t i = 0; i < x.size(); ++i) y[i] = t.multiply(e[i], inverse);
  });
}
Results softmax(const Call& c) { return only(softmax_of(c.terms(), c.array(0), c.whole(1, -1))); }
Array both_along(const Array& g, const Array& y, int64_t dim,
                 const std::function<void(std::span<const Element>, std::span<const Element>,
                                          std::span<Element>)>& f) {
  // The two beside each other, along dim.
  const size_t d = dimension(dim, g.dims());
  const Array all[] = {g, y};
  const Array joined = concatenated(all, d);
  Array result = along(joined, dim, [&](std::span<const Element> x, std::span<Element> out) {
    const size_t half = x.size() / 2;
    f(x.first(half), x.last(half), out.first(half));
  });
  return slice(result, d, 0, g.shape[d]);
}
// y * (g - sum(g * y))
Results softmax_backward(const Call& c) {
  Terms& t = c.terms();
  return only(both_along(c.array(0), c.array(1), c.whole(2, -1), [&](auto g, auto y, auto out) {
    std::vector<Element> products;
    for (size_t i = 0; i < g.size(); ++i) products.push_back(t.multiply(g[i], y[i]));
    const Element sum = t.sum(products);
    for (size_t i = 0; i < g.size(); ++i) out[i] = t.multiply(y[i], t.subtract(g[i], sum));
  }));
}
Results log_softmax(const Call& c) {
  Terms& t = c.terms();
  return only(along(c.array(0), c.whole(1, -1), [&](auto x, auto y) {
    std::vector<Element> e;
    for (Element v : x) e.push_back(t.exp(v));
    const Element l = t.log(t.sum(e));
    for (size_t i = 0; i < x.size(); ++i) y[i] = t.subtract(x[i], l);
  }));
}
// g - exp(y) * sum(g)
Results log_softmax_backward(const Call& c) {
  Terms& t = c.terms();
  return only(both_along(c.array(0), c.array(1), c.whole(2, -1), [&](auto g, auto y, auto out) {
    const Element sum = t.sum(std::vector<Element>(g.begin(), g.end()));
    for (size_t i = 0; i < g.size(); ++i) out[i] = t.subtract(g[i], t.multiply(t.exp(y[i]), sum));
  }));
}
Results logsumexp(const Call& c) {
  Terms& t = c.terms();
  return only(reduce(c.array(0), c.list(1), c.flag(2, false), [&](std::span<const Element> x) {
    std::vector<Element> e;
    for (Element v : x) e.push_back(t.exp(v));
    return t.log(t.sum(e));
  }));
}

enum Reduction : int64_t { kNone, kMean, kSum };

// [target != ignored], and the loss of a row of log-probabilities.
struct Picked {
  std::vector<Element> valid, loss;
};
Picked picked(const Call& c, const Array& x, const Array& target, int64_t ignored) {
  Terms& t = c.terms();
  Picked found;
  const auto classes = static_cast<size_t>(x.shape.back());
  for (size_t n = 0; n < target.at.size(); ++n) {
    const Element one[] = {target.at[n]};
    const auto valid = t.map(
        [&](std::span<const Rational> v) { return Rational(v[0] != Rational(ignored)); }, one);
    if (!valid) throw Unprovable("a target that is computed from values");
    found.valid.push_back(*valid);
    const Element value = t.look_up(target.at[n], [&](int64_t v) {
      if (v == ignored) return t.zero();
      if (v < 0 || v >= static_cast<int64_t>(classes))
        throw Unprovable("a target outside its classes");
      return t.scaled(x.at[n * classes + static_cast<size_t>(v)], Rational(-1));
    });
    found.loss.push_back(value);
  }
  return found;
}
Results nll_loss(const Call& c) {
  if (c.given(2)) throw Unprovable("weights of classes");
  Terms& t = c.terms();
  const Array x = c.array(0), target = c.array(1);
  const int64_t reduction = c.whole(3, kMean);
  const Picked p = picked(c, x, target, c.whole(4, -100));
  const Element weight = t.sum(p.valid);
  Results r;
  if (reduction == kNone) {
    r.emplace_back(Array{target.shape, p.loss});
    r.emplace_back(Array::scalar(t.zero()));
    return r;
  }
  const Element total = t.sum(p.loss);
  r.emplace_back(Array::scalar(reduction == kMean ? t.divide(total, weight) : total));
  r.emplace_back(Array::scalar(weight));
  return r;
}
Results nll_loss_backward(const Call& c) {
  if (c.given(3)) throw Unprovable("weights of classes");
  Terms& t = c.terms();
  const Array g = c.array(0), x = c.array(1), target = c.array(2), weight = c.array(6);
  const int64_t reduction = c.whole(4, kMean), ignored = c.whole(5, -100);
  const auto classes = static_cast<size_t>(x.shape.back());
  Array result = Array::filled(x.shape, t.zero());
  for (size_t n = 0; n < target.at.size(); ++n) {
    Element here = g.at[g.at.size() > 1 ? n : 0];
    if (reduction == kMean) here = t.divide(here, weight.at[0]);
    here = t.scaled(here, Rational(-1));
    for (size_t v = 0; v < classes; ++v) {
      const Element one[] = {target.at[n]};
      const auto hit = t.map(
          [&](std::span<const Rational> value) {
            return Rational(value[0] == Rational(static_cast<int64_t>(v)) &&
                            value[0] != Rational(ignored));
          },
          one);
      result.at[n * classes + v] = t.where(*hit, here, t.zero());
    }
  }
  return only(result);
}
Element loss_of(Terms& t, const Array& each_loss, int64_t reduction) {
  const Element total = t.sum(each_loss.at);
  return reduction == kMean
             ? t.scaled(total, Rational(1, static_cast<int64_t>(each_loss.at.size())))
             : total;
}
Results mse_loss(const Call& c) {
  Terms& t = c.terms();
  const Array a = each(c.array(0), c.array(1), [&](Element x, Element y) {
    const Element d = t.subtract(x, y);
    return t.multiply(d, d);
  });
  const int64_t reduction = c.whole(2, kMean);
  return only(reduction == kNone ? a : Array::scalar(loss_of(t, a, reduction)));
}
Results mse_loss_backward(const Call& c) {
  Terms& t = c.terms();
  const Array x = c.array(1);
  const Rational factor =
      c.whole(3, kMean) == kMean ? Rational(2, static_cast<int64_t>(x.at.size())) : Rational(2);
  const Array all[] = {c.array(0), x, c.array(2)};
  return only(each(all, [&](std::span<const Element> v) {
    return t.scaled(t.multiply(v[0], t.subtract(v[1], v[2])), factor);
  }));
}

// ---- Norms of layers: rows of the last dimensions, of so many elements.

struct Rows {
  Array shaped;  // [rows, length]
  Shape shape;
};
Rows rows_of(const Array& a, const std::vector<int64_t>& normal) {
  const int64_t length = size_of(normal);
  return {reshaped(a, {static_cast<int64_t>(a.at.size()) / length, length}), a.shape};
}
Element mean_of(Terms& t, std::span<const Element> x) {
  return t.scaled(t.sum(x), Rational(1, static_cast<int64_t>(x.size())));
}
Array flat_or_one(const Call& c, size_t i, int64_t length, Element otherwise) {
  return c.given(i) ? reshaped(c.array(i), {length}) : Array::filled({length}, otherwise);
}
Results layer_norm(const Call& c) {
  Terms& t = c.terms();
  const std::vector<int64_t> normal = c.list(1);
  const int64_t length = size_of(normal);
  const Array a = c.array(0);
  const Rows rows = rows_of(a, normal);
  const Array weight = flat_or_one(c, 2, length, t.one()),
              bias = flat_or_one(c, 3, length, t.zero());
  const Element eps = t.number(c.number(4, 1e-5));
  std::vector<Element> means, inverses;
  Array y = along(rows.shaped, -1, [&](std::span<const Element> x, std::span<Element> out) {
    const Element middle = mean_of(t, x);
    std::vector<Element> apart, squares;
    for (Element e : x) {
      apart.push_back(t.subtract(e, middle));
      squares.push_back(t.multiply(apart.back(), apart.back()));
    }
    const Element inverse = t.power(t.add(mean_of(t, squares), eps), Rational(-1, 2));
    for (size_t i = 0; i < x.size(); ++i)
      out[i] = t.add(t.multiply(t.multiply(apart[i], inverse), weight.at[i]), bias.at[i]);
    means.push_back(middle);
    inverses.push_back(inverse);
  });
  y.shape = a.shape;
  Shape small = a.shape;
  for (size_t i = 0; i < normal.size(); ++i) small[small.size() - 1 - i] = 1;
  Results r;
  r.emplace_back(std::move(y));
  r.emplace_back(Array{small, means});
  r.emplace_back(Array{small, inverses});
  return r;
}
// dx = inverse * (gw - mean(gw) - n * mean(gw * n)), n the normalised row.
Results layer_norm_backward(const Call& c) {
  Terms& t = c.terms();
  const std::vector<int64_t> normal = c.list(2);
  const int64_t length = size_of(normal);
  const Array a = c.array(1);
  const Array g = rows_of(c.array(0), normal).shaped, x = rows_of(a, normal).shaped;
  const Array middle = c.array(3), inverse = c.array(4);
  const Array weight = flat_or_one(c, 5, length, t.one());
  const auto width = static_cast<size_t>(length);
  Array dx = x;
  std::vector<std::vector<Element>> dw(width), db(width);
  for (size_t r = 0; r < x.at.size() / width; ++r) {
    std::vector<Element> n, gw, products;
    for (size_t i = 0; i < width; ++i) {
      const size_t at = r * width + i;
      n.push_back(t.multiply(t.subtract(x.at[at], middle.at[r]), inverse.at[r]));
      gw.push_back(t.multiply(g.at[at], weight.at[i]));
      products.push_back(t.multiply(gw[i], n[i]));
      dw[i].push_back(t.multiply(g.at[at], n[i]));
      db[i].push_back(g.at[at]);
    }
    const Element first = mean_of(t, gw), second = mean_of(t, products);
    for (size_t i = 0; i < width; ++i)
      dx.at[r * width + i] =
          t.multiply(inverse.at[r], t.subtract(t.subtract(gw[i], first), t.multiply(n[i], second)));
  }
  dx.shape = a.shape;
  Array w{normal, {}}, b{normal, {}};
  for (size_t i = 0; i < width; ++i) {
    w.at.push_back(t.sum(dw[i]));
    b.at.push_back(t.sum(db[i]));
  }
  Results r;
  r.emplace_back(std::move(dx));
  r.emplace_back(c.given(5) ? std::optional<Array>(w) : std::nullopt);
  r.emplace_back(c.given(6) ? std::optional<Array>(b) : std::nullopt);
  return r;
}
// ---- Attention as the processor's kernel does it: [batch, heads, length, width]

struct Heads {
  Array q, k, v;
  bool causal;
  Element scale;
};
int64_t rows_in(const Array& a) { return a.shape[a.dims() - 2]; }
int64_t width_of_head(const Array& a) { return a.shape[a.dims() - 1]; }
Array as_batch(const Array& a) {
  return reshaped(a, {static_cast<int64_t>(a.at.size()) / (rows_in(a) * width_of_head(a)),
                      rows_in(a), width_of_head(a)});
}
Array turned(const Array& a) { return permuted(a, {0, 2, 1}); }
Array scores_of(Terms& t, const Heads& h, const std::optional<Array>& mask) {
  Array s = batched_product(t, as_batch(h.q), turned(as_batch(h.k)));
  const int64_t length = s.shape[1], keys = s.shape[2];
  for (size_t n = 0; n < s.at.size(); ++n) {
    const int64_t i = static_cast<int64_t>(n) / keys % length, j = static_cast<int64_t>(n) % keys;
    s.at[n] = h.causal && j > i ? t.minus_infinity() : t.multiply(s.at[n], h.scale);
  }
  if (!mask) return s;
  Shape shape = h.q.shape;
  shape.back() = keys;
  const Array wide = broadcast_to(*mask, shape);
  for (size_t n = 0; n < s.at.size(); ++n) s.at[n] = t.add(s.at[n], wide.at[n]);
  return s;
}
Heads heads_of(const Call& c, size_t first, size_t causal) {
  Heads h{c.array(first), c.array(first + 1), c.array(first + 2),
          c.flag(causal, false, "is_causal"), 0};
  const double scale = c.number(99, 1 / std::sqrt(static_cast<double>(h.q.shape.back())), "scale");
  h.scale = c.terms().number(scale);
  return h;
}
std::optional<Array> mask_of(const Call& c) {
  if (!c.given(99, "attn_mask")) return {};
  return c.array(99, "attn_mask");
}
Results attention(const Call& c) {
  Terms& t = c.terms();
  if (c.number(3, 0, "dropout_p") != 0) throw Unprovable("a dropout");
  const Heads h = heads_of(c, 0, 4);
  const Array s = scores_of(t, h, mask_of(c));
  const Array p = softmax_of(t, s, -1);
  Array o = batched_product(t, p, as_batch(h.v));
  o.shape = h.q.shape;
  o.shape.back() = width_of_head(h.v);
  Array l = reduce(s, {-1}, false, [&](std::span<const Element> x) {
    std::vector<Element> e;
    for (Element v : x) e.push_back(t.exp(v));
    return t.log(t.sum(e));
  });
  l.shape.assign(h.q.shape.begin(), h.q.shape.end() - 1);
  Results r;
  r.emplace_back(std::move(o));
  r.emplace_back(std::move(l));
  return r;
}
Results attention_backward(const Call& c) {
  Terms& t = c.terms();
  const Heads h = heads_of(c, 1, 7);
  const Array g = as_batch(c.array(0));
  Array l = c.array(5);
  const Array s = scores_of(t, h, mask_of(c));
  l = reshaped(l, {s.shape[0], s.shape[1], 1});
  const Array p = each(s, l, [&](Element x, Element y) {
    return x == t.minus_infinity() ? t.zero() : t.exp(t.subtract(x, y));
  });
  Array dv = batched_product(t, turned(p), g);
  const Array dp = batched_product(t, g, turned(as_batch(h.v)));
  const Array products = each(dp, p, [&](Element x, Element y) { return t.multiply(x, y); });
  const Array row =
      reduce(products, {-1}, true, [&](std::span<const Element> x) { return t.sum(x); });
  const Array all[] = {p, dp, row};
  const Array ds = each(all, [&](std::span<const Element> x) {
    return t.multiply(t.multiply(x[0], t.subtract(x[1], x[2])), h.scale);
  });
  Array dq = batched_product(t, ds, as_batch(h.k)),
        dk = batched_product(t, turned(ds), as_batch(h.q));
  dq.shape = h.q.shape;
  dk.shape = h.k.shape;
  dv.shape = h.v.shape;
  Results r;
  r.emplace_back(std::move(dq));
  r.emplace_back(std::move(dk));
  r.emplace_back(std::move(dv));
  return r;
}

}  // namespace

std::vector<OperatorEntry> network_operators() {
  return {{"_softmax", softmax},
          {"_softmax_backward_data", softmax_backward},
          {"_log_softmax", log_softmax},
          {"_log_softmax_backward_data", log_softmax_backward},
          {"logsumexp", logsumexp},
          {"nll_loss_forward", nll_loss},
          {"nll_loss_backward", nll_loss_backward},
          {"mse_loss", mse_loss},
          {"mse_loss_backward", mse_loss_backward},
          {"native_layer_norm", layer_norm},
          {"native_layer_norm_backward", layer_norm_backward},
          {"_scaled_dot_product_flash_attention_for_cpu", attention},
          {"_scaled_dot_product_flash_attention_for_cpu_backward", attention_backward}};
}

}  // namespace opguard::proving
