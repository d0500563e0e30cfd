// What only moves elements, and what fills memory with numbers. No terms are made, but for
// constants: the elements that come out are those that went in.
//
//   roll([a b c d], 1)                  d a b c
//   constant_pad_nd([a b], [1, 2])      0 a b 0 0
//   triu of [[a b] [c d]]               a b 0 d
//
// Views of torch come as nodes without writes, and need nothing here. Their copies are in
// operators_placing.cc.
#include <algorithm>
#include <numeric>

#include "prove/meanings.h"

namespace opguard::proving {
namespace {

Results cat(const Call& c) {
  const std::vector<Array> parts = c.arrays(0);
  size_t dims = 1;
  for (const Array& a : parts) dims = std::max(dims, a.dims());
  return just(concatenated(parts, dimension(c.whole(1, 0, "dim"), dims)));
}
// As cat, with a new dimension of extent 1 in each.
Results stack(const Call& c) {
  std::vector<Array> parts = c.arrays(0);
  if (parts.empty()) throw Unprovable("a stack of nothing");
  const size_t dim = dimension(c.whole(1, 0, "dim"), parts[0].dims() + 1);
  for (Array& a : parts) a.shape.insert(a.shape.begin() + static_cast<int64_t>(dim), 1);
  return just(concatenated(parts, dim));
}
// Pairs from the last dimension on: how much before and behind. A negative one cuts.
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
  return just(a);
}
// Without dims over all elements in a row.
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
  return just(a);
}
Results flipped(const Call& c) {
  Array a = c.array(0);
  for (int64_t d : c.list(1))
    a = along(a, d, [](std::span<const Element> x, std::span<Element> y) {
      std::reverse_copy(x.begin(), x.end(), y.begin());
    });
  return just(a);
}
// By quarters, from the first of two dimensions to the second.
Results rotated(const Call& c) {
  Array a = c.array(0);
  const std::vector<int64_t> dims = c.list(2);
  const int64_t quarters = (c.whole(1, 1) % 4 + 4) % 4;
  const size_t d0 = dimension(dims.at(0), a.dims()), d1 = dimension(dims.at(1), a.dims());
  std::vector<size_t> order(a.dims());
  std::iota(order.begin(), order.end(), size_t{0});
  std::swap(order[d0], order[d1]);
  for (int64_t n = 0; n < quarters; ++n)
    a = permuted(along(a, dims[1],
                       [](std::span<const Element> x, std::span<Element> y) {
                         std::reverse_copy(x.begin(), x.end(), y.begin());
                       }),
                 order);
  return just(a);
}
// New dimensions come first, as broadcasting has them.
Results repeated(const Call& c) {
  Array a = c.array(0);
  const std::vector<int64_t> times_ = c.list(1);
  while (a.dims() < times_.size()) a.shape.insert(a.shape.begin(), 1);
  for (size_t d = 0; d < times_.size(); ++d)
    a = concatenated(std::vector<Array>(static_cast<size_t>(times_[d]), a), d);
  return just(a);
}
// Zeros above the diagonal (tril), or below it (triu). The diagonal itself stays.
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
  return just(a);
}
// Matrices along a diagonal, zeros beside them.
Results blocks(const Call& c) {
  std::vector<Array> parts = c.arrays(0);
  int64_t rows = 0, columns = 0;
  for (Array& a : parts) {
    while (a.dims() < 2) a.shape.insert(a.shape.begin(), 1);
    rows += a.shape[0];
    columns += a.shape[1];
  }
  Array result = Array::filled({rows, columns}, c.terms().zero());
  int64_t row = 0, column = 0;
  for (const Array& a : parts) {
    for (int64_t i = 0; i < a.shape[0]; ++i)
      std::copy_n(a.at.begin() + i * a.shape[1], a.shape[1],
                  result.at.begin() + (row + i) * columns + column);
    row += a.shape[0];
    column += a.shape[1];
  }
  return just(result);
}

// ---- What fills

// One number is enough: what is written is broadcast to the result's shape.
Results zeros(const Call& c) {
  for (size_t i = 0; i < c.node().arguments.size(); ++i) c.pass_over(i);
  return just(Array::scalar(c.terms().zero()));
}
Results ones(const Call& c) {
  for (size_t i = 0; i < c.node().arguments.size(); ++i) c.pass_over(i);
  return just(Array::scalar(c.terms().one()));
}
Results filled(const Call& c) {
  c.pass_over(0);
  return just(c.array(1));
}
// new_full(x, size, value): x and the size say only the result's form.
Results newly_filled(const Call& c) {
  c.pass_over(0);
  c.pass_over(1);
  return just(c.array(2));
}

}  // namespace

std::vector<OperatorEntry> moving_operators() {
  return {{"cat", cat},          {"stack", stack},         {"constant_pad_nd", padded},
          {"roll", rolled},      {"flip", flipped},        {"rot90", rotated},
          {"repeat", repeated},  {"tril", triangle<true>}, {"triu", triangle<false>},
          {"block_diag", blocks}};
}

std::vector<OperatorEntry> filling_operators() {
  return {{"zeros_like", zeros}, {"zero", zeros},           {"new_zeros", zeros},
          {"ones_like", ones},   {"new_ones", ones},        {"full_like", filled},
          {"fill", filled},      {"new_full", newly_filled}};
}

}  // namespace opguard::proving
