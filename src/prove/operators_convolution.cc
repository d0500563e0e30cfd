// Convolutions of any number of dimensions, transposed ones too, and windows as columns.
//
// All of them are one list of taps: which element of the small side meets which of the large side
// by which weight. Forward the small side is the sum of large * weight. Transposed it is the other
// way round. Each gradient is the sum of the other two.
//
//   an image's row of 3, kernel 2     taps (small, large, weight): 0 0 0, 0 1 1, 1 1 0, 1 2 1
//   forward          small[0] = large[0] weight[0] + large[1] weight[1]
//   gradient of large    large[1] = small[0] weight[1] + small[1] weight[0]
//
// Padding makes no taps: what is outside is zero. So no padded image is built.
//
// The cost: a tap for each window, each place in the kernel, and each pair of channels of one
// group.
#include "prove/meanings.h"
#include "prove/windows.h"

namespace opguard::proving {
namespace {

struct Tap {
  size_t small, large, weight;
};
Shape inner_shape(const Shape& whole) { return {whole.begin() + 2, whole.end()}; }

// small [batch, channels, ...], large the same, weight [small's channels, large's / groups, ...]
std::vector<Tap> taps_of(const Shape& small, const Shape& large, const Shape& weight,
                         const Window& window, int64_t groups) {
  std::vector<Tap> taps;
  const Shape in_small = inner_shape(small), in_large = inner_shape(large),
              kernel = inner_shape(weight);
  const int64_t each_small = size_of(in_small), each_large = size_of(in_large),
                each_kernel = size_of(kernel), out_of_group = small[1] / groups;
  std::vector<int64_t> at(in_large.size());
  positions_in(in_small, [&](const auto& p) {
    positions_in(kernel, [&](const auto& k) {
      if (!window.lies(p, k, in_large, at)) return;
      const int64_t s = flat_in(in_small, p), l = flat_in(in_large, at), w = flat_in(kernel, k);
      for (int64_t b = 0; b < small[0]; ++b)
        for (int64_t o = 0; o < small[1]; ++o)
          for (int64_t i = 0; i < weight[1]; ++i) {
            const int64_t channel = o / out_of_group * weight[1] + i;
            taps.push_back({static_cast<size_t>((b * small[1] + o) * each_small + s),
                            static_cast<size_t>((b * large[1] + channel) * each_large + l),
                            static_cast<size_t>((o * weight[1] + i) * each_kernel + w)});
          }
    });
  });
  return taps;
}
// The sum over taps of a * b, at `to` of each tap. Which side each array is on is told by a member
// of Tap, so forward, transposed and all gradients are this one function.
Array tapped(Terms& t, const std::vector<Tap>& taps, const Shape& shape, size_t Tap::* to,
             const Array& a, size_t Tap::* of_a, const Array& b, size_t Tap::* of_b) {
  std::vector<std::vector<Element>> parts(static_cast<size_t>(size_of(shape)));
  for (const Tap& tap : taps)
    parts[tap.*to].push_back(t.multiply(a.at[tap.*of_a], b.at[tap.*of_b]));
  Array result{shape, {}};
  for (const auto& list : parts) result.at.push_back(total_of(t, list));
  return result;
}
// Both convolutions' arguments from stride on.
struct Convolved {
  Window window;
  bool transposed;
  int64_t groups;
};
Convolved convolved(const Call& c, size_t first, size_t dims) {
  c.pass_over(first + 4);  // output_padding, which the result's shape says
  return {{spread(c.list(first), dims), spread(c.list(first + 1), dims),
           spread(c.list(first + 2), dims)},
          c.flag(first + 3, false),
          c.whole(first + 5, 1)};
}
Results convolution(const Call& c) {
  Terms& t = c.terms();
  const Array x = c.array(0), w = c.array(1);
  const auto bias = c.array_if_given(2);
  const Convolved by = convolved(c, 3, x.dims() - 2);
  const Shape shape = c.node().results.at(0).shape;
  Array y;
  if (by.transposed) {
    const auto taps = taps_of(x.shape, shape, w.shape, by.window, by.groups);
    y = tapped(t, taps, shape, &Tap::large, x, &Tap::small, w, &Tap::weight);
  } else {
    const auto taps = taps_of(shape, x.shape, w.shape, by.window, by.groups);
    y = tapped(t, taps, shape, &Tap::small, x, &Tap::large, w, &Tap::weight);
  }
  if (!bias) return just(y);
  const auto channels = static_cast<size_t>(shape[1]),
             inner = static_cast<size_t>(size_of(inner_shape(shape)));
  for (size_t n = 0; n < y.at.size(); ++n)
    y.at[n] = t.add(y.at[n], bias->at.at(n / inner % channels));
  return just(y);
}
// Of the image, the weights and the bias. The bias was added everywhere, so its gradient is the sum
// over all but channels.
Results convolution_backward(const Call& c) {
  Terms& t = c.terms();
  const Array g = c.array(0), x = c.array(1), w = c.array(2);
  c.pass_over(3);   // the bias's size
  c.pass_over(10);  // results that are not asked for are null
  const Convolved by = convolved(c, 4, x.dims() - 2);
  const Shape &small = by.transposed ? x.shape : g.shape,
              &large = by.transposed ? g.shape : x.shape;
  const auto taps = taps_of(small, large, w.shape, by.window, by.groups);
  auto of_x = &Tap::large, of_g = &Tap::small;
  if (by.transposed) std::swap(of_x, of_g);
  std::vector<int64_t> others = {0};
  for (size_t d = 2; d < g.dims(); ++d) others.push_back(static_cast<int64_t>(d));
  return several(tapped(t, taps, x.shape, of_x, g, of_g, w, &Tap::weight),
                 tapped(t, taps, w.shape, &Tap::weight, g, of_g, x, of_x),
                 summed(t, g, others, false));
}

// ---- Windows as columns: [batch, channels * window, places], and their sum back

struct Columns {
  Shape image, kernel;
  Window window;
};
// Calls f(column's element, image's element); none of the latter in the padding.
template <typename F>
void column_places(const Columns& of, int64_t planes, F f) {
  Shape places;
  for (size_t d = 0; d < of.image.size(); ++d)
    places.push_back(
        (of.image[d] + 2 * of.window.padding[d] - of.window.dilation[d] * (of.kernel[d] - 1) - 1) /
            of.window.stride[d] +
        1);
  const int64_t in_kernel = size_of(of.kernel), in_image = size_of(of.image),
                in_places = size_of(places);
  std::vector<int64_t> at(of.image.size());
  for (int64_t plane = 0; plane < planes; ++plane)
    positions_in(of.kernel, [&](const auto& k) {
      positions_in(places, [&](const auto& p) {
        const int64_t column =
            (plane * in_kernel + flat_in(of.kernel, k)) * in_places + flat_in(places, p);
        if (of.window.lies(p, k, of.image, at))
          f(static_cast<size_t>(column),
            static_cast<size_t>(plane * in_image + flat_in(of.image, at)));
      });
    });
}
Columns columns_of(const Call& c, size_t first, Shape image) {
  const std::vector<int64_t> kernel = spread(c.list(first, "kernel_size"), 2);
  return {std::move(image),
          kernel,
          {spread(c.list(first + 3, "stride"), 2), spread(c.list(first + 2, "padding"), 2),
           spread(c.list(first + 1, "dilation"), 2)}};
}
// Zeros where a window reaches into the padding.
Results image_to_columns(const Call& c) {
  const Array x = c.array(0);
  const Columns of = columns_of(c, 1, {x.shape[x.dims() - 2], x.shape[x.dims() - 1]});
  Array result = Array::filled(c.node().results.at(0).shape, c.terms().zero());
  column_places(of, static_cast<int64_t>(x.at.size()) / size_of(of.image),
                [&](size_t column, size_t at) { result.at.at(column) = x.at.at(at); });
  return just(result);
}
// The gradient of the former: an element that several windows have gets the sum of theirs.
Results columns_to_image(const Call& c) {
  Terms& t = c.terms();
  const Array x = c.array(0);
  const Columns of = columns_of(c, 2, spread(c.list(1, "output_size"), 2));
  const Shape shape = c.node().results.at(0).shape;
  std::vector<std::vector<Element>> parts(static_cast<size_t>(size_of(shape)));
  column_places(of, size_of(shape) / size_of(of.image),
                [&](size_t column, size_t at) { parts.at(at).push_back(x.at.at(column)); });
  Array result{shape, {}};
  for (const auto& list : parts) result.at.push_back(total_of(t, list));
  return just(result);
}

}  // namespace

std::vector<OperatorEntry> convolution_operators() {
  return {{"convolution", convolution},
          {"convolution_backward", convolution_backward},
          {"im2col", image_to_columns},
          {"col2im", columns_to_image}};
}

}  // namespace opguard::proving
