// Attention as kernels do it: [batch, heads, length, width].
//
//   s = scale q k^T, masked      p = softmax(s)    o = p v    l = log(sum(exp(s)))
//   from g, the gradient of o    dv = p^T g        dp = g v^T
//                                ds = scale p (dp - sum(dp p))
//                                dq = ds k         dk = ds^T q
//
// The row is written as a whole. That a kernel goes over keys in blocks and rescales what it has
// changes only the rounding. Masked scores are minus infinity, whose exponential is 0.
//
// Counterexample: flash attention takes sum(g o) for sum(dp p). Both are one number and not one id;
// plans that do so need namesakes.h.
//
// The cost: for each head length * keys scores, each a sum of `width` products.
#include <cmath>

#include "prove/meanings.h"

namespace opguard::proving {
namespace {

struct Heads {
  Array q, k, v;
  bool causal;
  Element scale;
};
int64_t rows_in(const Array& a) { return a.shape[a.dims() - 2]; }
int64_t width_of_head(const Array& a) { return a.shape[a.dims() - 1]; }
// [batch * heads, length, width]
Array as_batch(const Array& a) {
  return reshaped(a, {static_cast<int64_t>(a.at.size()) / (rows_in(a) * width_of_head(a)),
                      rows_in(a), width_of_head(a)});
}
Array turned(const Array& a) { return permuted(a, {0, 2, 1}); }
// Heads of keys that several heads of queries share, once for each.
Array shared_out(const Array& a, int64_t heads) {
  if (a.dims() < 3 || a.shape[a.dims() - 3] == heads) return a;
  const size_t dim = a.dims() - 3;
  if (a.shape[dim] == 0 || heads % a.shape[dim] != 0) throw Unprovable("heads do not fit");
  std::vector<Array> parts;
  for (int64_t h = 0; h < heads; ++h) {
    const int64_t from = h / (heads / a.shape[dim]);
    parts.push_back(slice(a, dim, from, from + 1));
  }
  return concatenated(parts, dim);
}
// The way back: gradients of heads that shared their keys are added up.
Array shared_in(Terms& t, const Array& g, const Shape& shape) {
  if (g.shape == shape || shape.size() < 3) return reshaped(g, shape);
  const size_t dim = shape.size() - 3;
  Shape split = shape;
  split.insert(split.begin() + static_cast<int64_t>(dim) + 1, g.shape[dim] / shape[dim]);
  return reshaped(summed(t, reshaped(g, split), {static_cast<int64_t>(dim) + 1}, false), shape);
}
// s above. causal: query i sees the keys 0 to i. A mask of truths says which keys are seen, any
// other is added.
Array scores_of(Terms& t, const Heads& h, const std::optional<Array>& mask, bool truths) {
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
  for (size_t n = 0; n < s.at.size(); ++n)
    s.at[n] =
        truths ? t.where(wide.at[n], s.at[n], t.minus_infinity()) : t.add(s.at[n], wide.at[n]);
  return s;
}
// Arguments of the kernels: where each of them stands.
struct KernelPlaces {
  size_t first, dropout, causal, scale;
};
Heads heads_of(const Call& c, const KernelPlaces& at) {
  if (c.number(at.dropout, 0, "dropout_p") != 0)
    throw Unprovable("dropout within attention draws random numbers; set its p to 0 for a proof");
  Heads h{c.array(at.first), c.array(at.first + 1), c.array(at.first + 2),
          c.flag(at.causal, false, "is_causal"), 0};
  h.k = shared_out(h.k, h.q.shape[h.q.dims() - 3]);
  h.v = shared_out(h.v, h.q.shape[h.q.dims() - 3]);
  h.scale = c.terms().number(
      c.number(at.scale, 1 / std::sqrt(static_cast<double>(h.q.shape.back())), "scale"));
  return h;
}
constexpr size_t kNamed = 99;  // only by its name

// The result, and the logarithm of each row's sum of exponentials.
Results attention(const Call& c) {
  Terms& t = c.terms();
  const Heads h = heads_of(c, {0, 3, 4, kNamed});
  const Array s = scores_of(t, h, c.array_if_given(kNamed, "attn_mask"),
                            c.dtype(kNamed, "attn_mask") == "bool");
  Array o = batched_product(t, softmax_of(t, s, -1), as_batch(h.v));
  o.shape = h.q.shape;
  o.shape.back() = width_of_head(h.v);
  Array l = reduce(s, {-1}, false, [&](std::span<const Element> x) {
    std::vector<Element> e;
    for (Element v : x) e.push_back(t.exp(v));
    return t.log(t.sum(e));
  });
  l.shape.assign(h.q.shape.begin(), h.q.shape.end() - 1);
  return several(std::move(o), std::move(l));
}
// p is made of s and l again, as kernels do, which keep l alone.
Results attention_backward(const Call& c) {
  Terms& t = c.terms();
  const Heads h = heads_of(c, {1, 6, 7, kNamed});
  c.pass_over(4);  // the result: what it is needed for is computed anew
  const Array g = as_batch(c.array(0));
  const Array s = scores_of(t, h, c.array_if_given(kNamed, "attn_mask"),
                            c.dtype(kNamed, "attn_mask") == "bool");
  const Array l = reshaped(c.array(5), {s.shape[0], s.shape[1], 1});
  const Array p = each(s, l, [&](Element x, Element y) {
    return x == t.minus_infinity() ? t.zero() : t.exp(t.subtract(x, y));
  });
  Array dv = batched_product(t, turned(p), g);
  const Array dp = batched_product(t, g, turned(as_batch(h.v)));
  const Array row = summed(t, times(t, dp, p), {-1}, true);
  const Array all[] = {p, dp, row};
  const Array ds = each(all, [&](std::span<const Element> x) {
    return t.multiply(t.multiply(x[0], t.subtract(x[1], x[2])), h.scale);
  });
  Array dq = batched_product(t, ds, as_batch(h.k)),
        dk = batched_product(t, turned(ds), as_batch(h.q));
  dq.shape = h.q.shape;
  dk.shape = h.k.shape;
  dv.shape = h.v.shape;
  return several(std::move(dq), shared_in(t, dk, c.tensor(2).shape),
                 shared_in(t, dv, c.tensor(3).shape));
}

}  // namespace

std::vector<OperatorEntry> attention_operators() {
  return {{"_scaled_dot_product_flash_attention_for_cpu", attention},
          {"_scaled_dot_product_flash_attention_for_cpu_backward", attention_backward}};
}

}  // namespace opguard::proving
