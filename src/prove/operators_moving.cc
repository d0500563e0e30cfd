// What only moves elements.
#include <algorithm>
#include <numeric>

#include "prove/operators.h"

namespace opguard::proving {
namespace {

Results alone(Array a) {
  Results r;
  r.emplace_back(std::move(a));
  return r;
}

Results cat(const Call& c) {
  const std::vector<Array> parts = c.arrays(0);
  const size_t dims = parts.empty() ? 1 : parts[0].dims();
  return alone(concatenated(parts, dimension(c.whole(1, 0, "dim"), dims)));
}
Results stack(const Call& c) {
  std::vector<Array> parts = c.arrays(0);
  if (parts.empty()) throw Unprovable("a stack of nothing");
  const size_t dim = dimension(c.whole(1, 0, "dim"), parts[0].dims() + 1);
  for (Array& a : parts) a.shape.insert(a.shape.begin() + static_cast<int64_t>(dim), 1);
  return alone(concatenated(parts, dim));
}
// Zeros, but for the slice, which is the gradient.
Results slice_backward(const Call& c) {
  const Array g = c.array(0);
  const Shape shape = c.list(1);
  const size_t dim = dimension(c.whole(2, 0), shape.size());
  const int64_t begin = c.whole(3, 0), step = c.whole(5, 1);
  Array result = Array::filled(shape, c.terms().zero());
  int64_t inner = 1, outer = 1;
  for (size_t d = dim + 1; d < shape.size(); ++d) inner *= shape[d];
  for (size_t d = 0; d < dim; ++d) outer *= shape[d];
  const int64_t from = begin < 0 ? begin + shape[dim] : begin;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < g.shape[dim]; ++i)
      std::copy_n(g.at.begin() + (o * g.shape[dim] + i) * inner, inner,
                  result.at.begin() + (o * shape[dim] + from + i * step) * inner);
  return alone(result);
}
Results select_backward(const Call& c) {
  const Array g = c.array(0);
  const Shape shape = c.list(1);
  const size_t dim = dimension(c.whole(2, 0), shape.size());
  int64_t at = c.whole(3, 0);
  if (at < 0) at += shape[dim];
  Array result = Array::filled(shape, c.terms().zero());
  int64_t inner = 1, outer = 1;
  for (size_t d = dim + 1; d < shape.size(); ++d) inner *= shape[d];
  for (size_t d = 0; d < dim; ++d) outer *= shape[d];
  for (int64_t o = 0; o < outer; ++o)
    std::copy_n(g.at.begin() + o * inner, inner, result.at.begin() + (o * shape[dim] + at) * inner);
  return alone(result);
}
Results padded(const Call& c) {
  Array a = c.array(0);
  const std::vector<int64_t> pad = c.list(1);
  const Element value = c.terms().number(c.number(2, 0, "value"));
  for (size_t i = 0; 2 * i + 1 < pad.size(); ++i) {
    const size_t dim = a.dims() - 1 - i;
    const auto block = [&](int64_t length) {
      Shape shape = a.shape;
      shape[dim] = length;
      return Array::filled(shape, value);
    };
    Array middle = slice(a, dim, std::max<int64_t>(-pad[2 * i], 0),
                         a.shape[dim] - std::max<int64_t>(-pad[2 * i + 1], 0));
    const Array all[] = {block(std::max<int64_t>(pad[2 * i], 0)), middle,
                         block(std::max<int64_t>(pad[2 * i + 1], 0))};
    a = concatenated(all, dim);
  }
  return alone(a);
}
Results rolled(const Call& c) {
  Array a = c.array(0);
  const std::vector<int64_t> shifts = c.list(1), dims = c.list(2);
  const Shape shape = a.shape;
  if (dims.empty()) a.shape = {static_cast<int64_t>(a.at.size())};
  for (size_t i = 0; i < shifts.size(); ++i) {
    const size_t dim = dims.empty() ? 0 : dimension(dims[i], a.dims());
    const int64_t n = a.shape[dim];
    if (n == 0) continue;
    const int64_t cut = ((-shifts[i]) % n + n) % n;
    const Array all[] = {slice(a, dim, cut, n), slice(a, dim, 0, cut)};
    a = concatenated(all, dim);
  }
  a.shape = shape;
  return alone(a);
}
Results flipped(const Call& c) {
  Array a = c.array(0);
  for (int64_t d : c.list(1))
    a = along(a, d, [](std::span<const Element> x, std::span<Element> y) {
      std::reverse_copy(x.begin(), x.end(), y.begin());
    });
  return alone(a);
}
Results repeated(const Call& c) {
  Array a = c.array(0);
  const std::vector<int64_t> times = c.list(1);
  while (a.dims() < times.size()) a.shape.insert(a.shape.begin(), 1);
  for (size_t d = 0; d < times.size(); ++d)
    a = concatenated(std::vector<Array>(static_cast<size_t>(times[d]), a), d);
  return alone(a);
}
template <bool kLower>
Results triangle(const Call& c) {
  Array a = c.array(0);
  const int64_t diagonal = c.whole(1, 0, "diagonal");
  const int64_t rows = a.shape[a.dims() - 2], columns = a.shape[a.dims() - 1];
  for (size_t n = 0; n < a.at.size(); ++n) {
    const int64_t i = static_cast<int64_t>(n) / columns % rows,
                  j = static_cast<int64_t>(n) % columns;
    if (kLower ? j - i > diagonal : j - i < diagonal) a.at[n] = c.terms().zero();
  }
  return alone(a);
}
Results viewed(const Call& c) {
  if (c.node().results.empty()) throw Unprovable("a view without a result");
  return alone(reshaped(c.array(0), c.node().results[0].shape));
}

}  // namespace

std::vector<OperatorEntry> moving_operators() {
  return {{"cat", cat},
          {"stack", stack},
          {"slice_backward", slice_backward},
          {"select_backward", select_backward},
          {"constant_pad_nd", padded},
          {"roll", rolled},
          {"flip", flipped},
          {"repeat", repeated},
          {"tril", triangle<true>},
          {"triu", triangle<false>},
          {"_unsafe_view", viewed},
          {"_reshape_alias", viewed},
          {"view", viewed}};
}

}  // namespace opguard::proving
