// Pools: averages and maxima of windows.
//
//   avg_pool of [a b c d], kernel 2    (a + b) / 2, (c + d) / 2: a mix (windows.h)
//   max_pool of [a b c d], kernel 2    max(a, b), max(c, d)
//   its gradient for a                 g0 (1 - step(b - a)); for b  g0 step(b - a)
//
// The gradient's conditions are made anew from the values, and not from the places that the forward
// operator kept. So no order of reals is an unknown here.
//
// Counterexample: where windows overlap a maximum's gradient is a sum over windows; an average's is
// the same mix transposed, which does that by itself.
//
// The cost: an average has one part for each element of its window. A maximum's gradient has n
// conditions of n - 1 steps for a window of n.
#include <algorithm>

#include "prove/meanings.h"
#include "prove/windows.h"

namespace opguard::proving {
namespace {

Shape last_dims(const Shape& shape, size_t dims) {
  if (shape.size() < dims) throw Unprovable("an image of too few dimensions");
  return {shape.end() - static_cast<int64_t>(dims), shape.end()};
}
// An empty stride means the kernel's size: windows side by side.
// An empty stride means the kernel's size: windows side by side.
std::vector<int64_t> stride_or_kernel(const Call& c, size_t i, const std::vector<int64_t>& kernel) {
  const std::vector<int64_t> stride = c.list(i);
  return stride.empty() ? kernel : spread(stride, kernel.size());
}

// ---- Averages

// Windows of one dimension: a share of 1 / what is counted, or of 1 where a divisor is given.
// Padding counts as zeros, or not at all. A last window that reaches beyond the padding is cut
// there.
Mix average_of(int64_t from, int64_t to, int64_t kernel, int64_t stride, int64_t padding,
               bool with_padding, bool divided) {
  Mix mix{from, {}};
  for (int64_t i = 0; i < to; ++i) {
    const int64_t begin = i * stride - padding, end = std::min(begin + kernel, from + padding);
    const int64_t first = std::max<int64_t>(begin, 0), last = std::min(end, from);
    const int64_t count = with_padding ? end - begin : last - first;
    auto& row = mix.rows.emplace_back();
    for (int64_t k = first; k < last; ++k)
      row.emplace_back(k, divided ? Rational(1, count) : Rational(1));
  }
  return mix;
}
template <size_t kDims, bool kBack>
Results average_pool(const Call& c) {
  Terms& t = c.terms();
  const Array a = c.array(0);
  const size_t first = kBack ? 2 : 1;
  const Shape image = last_dims(kBack ? c.tensor(1).shape : a.shape, kDims);
  const Shape pooled = last_dims(kBack ? a.shape : c.node().results.at(0).shape, kDims);
  const std::vector<int64_t> kernel = spread(c.list(first), kDims),
                             stride = stride_or_kernel(c, first + 1, kernel);
  const std::vector<int64_t> padding =
      c.given(first + 2) ? spread(c.list(first + 2), kDims) : std::vector<int64_t>(kDims, 0);
  c.pass_over(first + 3);  // whether sizes are rounded up, which the result's shape says
  const bool with_padding = c.flag(first + 4, true);
  const int64_t divisor = c.whole(first + 5, 0);
  std::vector<Mix> mixes;
  for (size_t d = 0; d < kDims; ++d)
    mixes.push_back(average_of(image[d], pooled[d], kernel[d], stride[d], padding[d], with_padding,
                               divisor == 0));
  const Array y = mixed_all(t, a, mixes, kBack);
  if (divisor == 0) return just(y);
  return just(each(y, [&](Element e) { return t.scaled(e, Rational(1, divisor)); }));
}
// Window i of n to m is from floor(i n / m) up to ceil((i + 1) n / m). Of 5 to 3: 0 1, 1 2 3, 3 4:
// they overlap.
std::pair<int64_t, int64_t> adaptive_window(int64_t i, int64_t from, int64_t to) {
  return {i * from / to, ((i + 1) * from + to - 1) / to};
}
template <size_t kDims, bool kBack>
Results adaptive_average_pool(const Call& c) {
  const Array a = c.array(0);
  c.pass_over(1);  // sizes, which shapes say
  const Shape image = last_dims(kBack ? c.tensor(1).shape : a.shape, kDims);
  const Shape pooled = last_dims(kBack ? a.shape : c.node().results.at(0).shape, kDims);
  std::vector<Mix> mixes;
  for (size_t d = 0; d < kDims; ++d) {
    Mix mix{image[d], {}};
    for (int64_t i = 0; i < pooled[d]; ++i) {
      const auto [begin, end] = adaptive_window(i, image[d], pooled[d]);
      auto& row = mix.rows.emplace_back();
      for (int64_t k = begin; k < end; ++k) row.emplace_back(k, Rational(1, end - begin));
    }
    mixes.push_back(std::move(mix));
  }
  return just(mixed_all(c.terms(), a, mixes, kBack));
}

// ---- Maxima. The place of the greatest is nobody's business, but for the gradient. That goes to
// the element that is greater than those before it, and no less than those behind it.

// By dimension, of each result's position the positions it is of. A window of an image is their
// product.
using Covered = std::vector<std::vector<std::vector<int64_t>>>;

// Calls f(result, elements of its window) over all planes.
template <typename F>
void windows_of(const Covered& covered, const Shape& image, int64_t planes, F f) {
  Shape pooled;
  for (const auto& dim : covered) pooled.push_back(static_cast<int64_t>(dim.size()));
  std::vector<size_t> inside;
  for (int64_t plane = 0; plane < planes; ++plane)
    positions_in(pooled, [&](const auto& p) {
      Shape extent;
      for (size_t d = 0; d < p.size(); ++d)
        extent.push_back(static_cast<int64_t>(covered[d][static_cast<size_t>(p[d])].size()));
      inside.clear();
      positions_in(extent, [&](const auto& k) {
        std::vector<int64_t> at;
        for (size_t d = 0; d < p.size(); ++d)
          at.push_back(covered[d][static_cast<size_t>(p[d])][static_cast<size_t>(k[d])]);
        inside.push_back(static_cast<size_t>(plane * size_of(image) + flat_in(image, at)));
      });
      if (inside.empty()) throw Unprovable("a window of nothing");
      f(static_cast<size_t>(plane * size_of(pooled) + flat_in(pooled, p)), inside);
    });
}
Results pooled_maxima(const Call& c, const Array& x, const Covered& covered) {
  Terms& t = c.terms();
  const Shape image = last_dims(x.shape, covered.size());
  Array y = Array::filled(c.node().results.at(0).shape, t.zero());
  windows_of(covered, image, static_cast<int64_t>(x.at.size()) / size_of(image),
             [&](size_t to, const std::vector<size_t>& inside) {
               std::vector<Element> all;
               for (size_t n : inside) all.push_back(x.at[n]);
               y.at.at(to) = t.maximum(all);
             });
  Results r = just(y);
  r.emplace_back(std::nullopt);
  return r;
}
// g for the element that is above those before it in its window, and not below those behind it. Of
// equal ones that is the first, and of each window one element alone.
// The gradient goes to the element that is above those before it in its window, and not below those
// behind it. Of equal ones that is the first, so each window has one.
Results pooled_maxima_backward(const Call& c, const Array& g, const Array& x,
                               const Covered& covered) {
  Terms& t = c.terms();
  const Shape image = last_dims(x.shape, covered.size());
  std::vector<std::vector<Element>> parts(x.at.size());
  windows_of(covered, image, static_cast<int64_t>(x.at.size()) / size_of(image),
             [&](size_t from, const std::vector<size_t>& inside) {
               for (size_t i = 0; i < inside.size(); ++i) {
                 Element is_first = t.one();
                 for (size_t j = 0; j < inside.size(); ++j) {
                   if (i == j) continue;
                   const Element mine = x.at[inside[i]], other = x.at[inside[j]];
                   is_first =
                       t.multiply(is_first, j < i ? t.less(other, mine)
                                                  : t.subtract(t.one(), t.less(mine, other)));
                 }
                 parts[inside[i]].push_back(t.multiply(g.at.at(from), is_first));
               }
             });
  Array dx{x.shape, {}};
  for (const auto& list : parts) dx.at.push_back(total_of(t, list));
  return just(dx);
}
// Positions in the padding are left out: for a maximum padding is minus infinity.
// Positions in the padding are left out: for a maximum padding is minus infinity.
Covered covered_by(const Call& c, size_t first, const Shape& image, const Shape& pooled) {
  const size_t dims = image.size();
  const std::vector<int64_t> kernel = spread(c.list(first), dims),
                             stride = stride_or_kernel(c, first + 1, kernel);
  const auto or_all = [&](size_t i, int64_t otherwise) {
    return c.given(i) ? spread(c.list(i), dims) : std::vector<int64_t>(dims, otherwise);
  };
  const std::vector<int64_t> padding = or_all(first + 2, 0), dilation = or_all(first + 3, 1);
  c.pass_over(first + 4);  // whether sizes are rounded up, which the result's shape says
  Covered covered(dims);
  for (size_t d = 0; d < dims; ++d)
    for (int64_t i = 0; i < pooled[d]; ++i) {
      auto& places = covered[d].emplace_back();
      for (int64_t k = 0; k < kernel[d]; ++k) {
        const int64_t at = i * stride[d] - padding[d] + k * dilation[d];
        if (at >= 0 && at < image[d]) places.push_back(at);
      }
    }
  return covered;
}
template <size_t kDims>
Results max_pool(const Call& c) {
  const Array x = c.array(0);
  return pooled_maxima(
      c, x,
      covered_by(c, 1, last_dims(x.shape, kDims), last_dims(c.node().results.at(0).shape, kDims)));
}
template <size_t kDims>
Results max_pool_backward(const Call& c) {
  const Array g = c.array(0), x = c.array(1);
  c.pass_over(7);  // the places: told anew from the values
  return pooled_maxima_backward(
      c, g, x, covered_by(c, 2, last_dims(x.shape, kDims), last_dims(g.shape, kDims)));
}
Covered covered_adaptively(const Shape& image, const Shape& pooled) {
  Covered covered(image.size());
  for (size_t d = 0; d < image.size(); ++d)
    for (int64_t i = 0; i < pooled[d]; ++i) {
      const auto [begin, end] = adaptive_window(i, image[d], pooled[d]);
      auto& places = covered[d].emplace_back();
      for (int64_t k = begin; k < end; ++k) places.push_back(k);
    }
  return covered;
}
template <size_t kDims>
Results adaptive_max_pool(const Call& c) {
  const Array x = c.array(0);
  c.pass_over(1);
  return pooled_maxima(c, x,
                       covered_adaptively(last_dims(x.shape, kDims),
                                          last_dims(c.node().results.at(0).shape, kDims)));
}
template <size_t kDims>
Results adaptive_max_pool_backward(const Call& c) {
  const Array g = c.array(0), x = c.array(1);
  c.pass_over(2);
  return pooled_maxima_backward(
      c, g, x, covered_adaptively(last_dims(x.shape, kDims), last_dims(g.shape, kDims)));
}

}  // namespace

std::vector<OperatorEntry> pooling_operators() {
  return {{"avg_pool2d", average_pool<2, false>},
          {"avg_pool2d_backward", average_pool<2, true>},
          {"avg_pool3d", average_pool<3, false>},
          {"avg_pool3d_backward", average_pool<3, true>},
          {"_adaptive_avg_pool2d", adaptive_average_pool<2, false>},
          {"_adaptive_avg_pool2d_backward", adaptive_average_pool<2, true>},
          {"_adaptive_avg_pool3d", adaptive_average_pool<3, false>},
          {"_adaptive_avg_pool3d_backward", adaptive_average_pool<3, true>},
          {"max_pool2d_with_indices", max_pool<2>},
          {"max_pool2d_with_indices_backward", max_pool_backward<2>},
          {"max_pool3d_with_indices", max_pool<3>},
          {"max_pool3d_with_indices_backward", max_pool_backward<3>},
          {"adaptive_max_pool2d", adaptive_max_pool<2>},
          {"adaptive_max_pool2d_backward", adaptive_max_pool_backward<2>},
          {"adaptive_max_pool3d", adaptive_max_pool<3>},
          {"adaptive_max_pool3d_backward", adaptive_max_pool_backward<3>}};
}

}  // namespace opguard::proving
