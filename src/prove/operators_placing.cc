// Copies of views, their gradients, and what is written through them.
//
// A view is a function on arrays that only moves. Applied to an array of places (0, 1, 2, ...) it
// says which elements it sees. So each view is written once, for three operators:
//   select_copy(x, ...)           sees
//   select_backward(g, sizes, ..) zeros, with g added where it sees
//   select_scatter(x, y, ...)     x, with y put where it sees
//
//   diagonal of [[0 1] [2 3]]     sees 0 3, so its gradient is [[g0 0] [0 g1]]
//
// Places are kept as elements, though they are no terms: nothing asks the table about them.
//
// Counterexample: a view that the program makes, and not a copy, comes as strides over a storage
// (rank.h).
#include <algorithm>
#include <numeric>

#include "prove/meanings.h"

namespace opguard::proving {
namespace {

// The view's arguments stand from `first` on.
using View = Array (*)(const Call& c, size_t first, const Array& a);

// One entry along a dimension, which is gone.
// One entry along a dimension, which is gone.
Array selected(const Call& c, size_t first, const Array& a) {
  const size_t dim = dimension(c.whole(first, 0), a.dims());
  int64_t at = c.whole(first + 1, 0);
  if (at < 0) at += a.shape[dim];
  if (at < 0 || at >= a.shape[dim]) throw Unprovable("an index outside its dimension");
  Array one = slice(a, dim, at, at + 1);
  one.shape.erase(one.shape.begin() + static_cast<int64_t>(dim));
  return one;
}
Array sliced(const Call& c, size_t first, const Array& a) {
  const size_t dim = dimension(c.whole(first, 0), a.dims());
  const int64_t end = c.whole(first + 2, a.shape[dim]);
  return slice(a, dim, c.whole(first + 1, 0), end, c.whole(first + 3, 1));
}
// By a begin and a length, where sliced() has a begin and an end.
// By a begin and a length, where sliced() has a begin and an end.
Array narrowed(const Call& c, size_t first, const Array& a) {
  const size_t dim = dimension(c.whole(first, 0), a.dims());
  int64_t begin = c.whole(first + 1, 0);
  if (begin < 0) begin += a.shape[dim];
  return slice(a, dim, begin, begin + c.whole(first + 2, 0));
}
// The two dimensions become one, the last.
Array diagonal_of(const Array& a, int64_t offset, size_t d1, size_t d2) {
  std::vector<size_t> order;
  for (size_t d = 0; d < a.dims(); ++d)
    if (d != d1 && d != d2) order.push_back(d);
  order.push_back(d1);
  order.push_back(d2);
  const Array last = permuted(a, order);
  const int64_t rows = a.shape[d1], columns = a.shape[d2];
  const int64_t i0 = std::max<int64_t>(-offset, 0), j0 = std::max<int64_t>(offset, 0);
  const int64_t length = std::max<int64_t>(std::min(rows - i0, columns - j0), 0);
  Array result{{last.shape.begin(), last.shape.end() - 2}, {}};
  result.shape.push_back(length);
  const int64_t plane = rows * columns;
  for (int64_t n = 0; plane > 0 && n < static_cast<int64_t>(last.at.size()); n += plane)
    for (int64_t k = 0; k < length; ++k)
      result.at.push_back(last.at[static_cast<size_t>(n + (i0 + k) * columns + j0 + k)]);
  return result;
}
Array diagonal(const Call& c, size_t first, const Array& a) {
  return diagonal_of(a, c.whole(first, 0, "offset"),
                     dimension(c.whole(first + 1, 0, "dim1"), a.dims()),
                     dimension(c.whole(first + 2, 1, "dim2"), a.dims()));
}
// Windows along a dimension; what is within one becomes the last dimension.
//   [a b c d e], size 3, step 2     [[a b c] [c d e]]: c is seen twice, so its gradient is a sum
Array unfolded(const Call& c, size_t first, const Array& a) {
  const size_t dim = dimension(c.whole(first, 0), a.dims());
  const int64_t size = c.whole(first + 1, 1), step = c.whole(first + 2, 1);
  std::vector<Array> windows;
  for (int64_t begin = 0; begin + size <= a.shape[dim]; begin += step) {
    Array one = slice(a, dim, begin, begin + size);
    one.shape.insert(one.shape.begin() + static_cast<int64_t>(dim), 1);
    std::vector<size_t> order(one.dims());
    std::iota(order.begin(), order.end(), size_t{0});
    order.erase(order.begin() + static_cast<int64_t>(dim) + 1);
    order.push_back(dim + 1);
    windows.push_back(permuted(one, order));
  }
  return concatenated(windows, dim);
}
Array permuted_by(const Call& c, size_t first, const Array& a) {
  std::vector<size_t> order;
  for (int64_t d : c.list(first)) order.push_back(dimension(d, a.dims()));
  return permuted(a, order);
}
Array transposed_by(const Call& c, size_t first, const Array& a) {
  std::vector<size_t> order(a.dims());
  std::iota(order.begin(), order.end(), size_t{0});
  if (order.empty()) return a;
  std::swap(order[dimension(c.whole(first, 0), a.dims())],
            order[dimension(c.whole(first + 1, 1), a.dims())]);
  return permuted(a, order);
}
Array turned_around(const Call&, size_t, const Array& a) {
  return a.dims() < 2 ? a : permuted(a, {1, 0});
}
// In the result's shape: what the arguments say is in it.
Array in_another_shape(const Call& c, size_t first, const Array& a) {
  for (size_t i = first; i < c.node().arguments.size(); ++i) c.pass_over(i);
  return reshaped(a, c.node().results.at(0).shape);
}
Array expanded(const Call& c, size_t first, const Array& a) {
  c.pass_over(first);
  return broadcast_to(a, c.node().results.at(0).shape);
}

template <View kView>
Results copy_of(const Call& c) {
  return just(kView(c, 1, c.array(0)));
}
// 0, 1, 2, ... in the shape, for a view to look at.
// 0, 1, 2, ... in the shape, for a view to look at.
Array places_in(const Shape& shape) {
  Array places{shape, std::vector<Element>(static_cast<size_t>(size_of(shape)))};
  std::iota(places.at.begin(), places.at.end(), Element{0});
  return places;
}
template <View kView>
Results seen_backward(const Call& c) {
  Terms& t = c.terms();
  const Array g = c.array(0), seen = kView(c, 2, places_in(c.list(1)));
  if (seen.at.size() != g.at.size()) throw Unprovable("sizes do not fit");
  std::vector<std::vector<Element>> parts(static_cast<size_t>(size_of(c.list(1))));
  for (size_t n = 0; n < g.at.size(); ++n) parts[seen.at[n]].push_back(g.at[n]);
  Array result{c.list(1), {}};
  for (const auto& list : parts) result.at.push_back(total_of(t, list));
  return just(result);
}
template <View kView>
Results put_where_seen(const Call& c) {
  Array result = c.array(0);
  const Array seen = kView(c, 2, places_in(result.shape));
  const Array put = broadcast_to(c.array(1), seen.shape);
  for (size_t n = 0; n < put.at.size(); ++n) result.at[seen.at[n]] = put.at[n];
  return just(result);
}
// The last dimension along the diagonal of two new ones.
Results embedded_diagonal(const Call& c) {
  const Array a = c.array(0);
  const Shape shape = c.node().results.at(0).shape;
  const Array seen =
      diagonal_of(places_in(shape), c.whole(1, 0), dimension(c.whole(2, -2), shape.size()),
                  dimension(c.whole(3, -1), shape.size()));
  if (seen.at.size() != a.at.size()) throw Unprovable("sizes do not fit");
  Array result = Array::filled(shape, c.terms().zero());
  for (size_t n = 0; n < a.at.size(); ++n) result.at[seen.at[n]] = a.at[n];
  return just(result);
}
Results trace(const Call& c) {
  return just(Array::scalar(total_of(c.terms(), diagonal_of(c.array(0), 0, 0, 1).at)));
}

// ---- Copies in parts

Results in_parts(const Array& a, size_t dim, const std::vector<int64_t>& sizes) {
  Results r;
  int64_t at = 0;
  for (int64_t size : sizes) {
    r.emplace_back(slice(a, dim, at, at + size));
    at += size;
  }
  return r;
}
Results split(const Call& c) {
  const Array a = c.array(0);
  const size_t dim = dimension(c.whole(2, 0, "dim"), a.dims());
  const int64_t size = c.whole(1, 1);
  if (size < 1) throw Unprovable("parts of nothing");
  std::vector<int64_t> sizes;
  for (int64_t at = 0; at < a.shape[dim]; at += size)
    sizes.push_back(std::min(size, a.shape[dim] - at));
  return in_parts(a, dim, sizes);
}
Results split_with_sizes(const Call& c) {
  const Array a = c.array(0);
  return in_parts(a, dimension(c.whole(2, 0, "dim"), a.dims()), c.list(1));
}
Results unbound(const Call& c) {
  const Array a = c.array(0);
  const size_t dim = dimension(c.whole(1, 0, "dim"), a.dims());
  Results r = in_parts(a, dim, std::vector<int64_t>(static_cast<size_t>(a.shape[dim]), 1));
  for (auto& part : r) part->shape.erase(part->shape.begin() + static_cast<int64_t>(dim));
  return r;
}

// ---- Channels as pixels: [..., c r r, h, w] and [..., c, h r, w r]

// Each r r channels become one of r times the height and width; without kShuffles the way back.
// Each r r channels become one of r times the height and width; without kShuffles the way back.
template <bool kShuffles>
Results pixels(const Call& c) {
  Array a = c.array(0);
  const int64_t r = c.whole(1, 1);
  const Shape result = c.node().results.at(0).shape;
  const size_t d = a.dims();
  const Shape& small = kShuffles ? a.shape : result;
  const Shape& large = kShuffles ? result : a.shape;
  int64_t batch = 1;
  for (size_t i = 0; i + 3 < d; ++i) batch *= a.shape[i];
  const int64_t channels = large[d - 3], height = small[d - 2], width = small[d - 1];
  if (kShuffles)
    a = permuted(reshaped(a, {batch, channels, r, r, height, width}), {0, 1, 4, 2, 5, 3});
  else
    a = permuted(reshaped(a, {batch, channels, height, r, width, r}), {0, 1, 3, 5, 2, 4});
  return just(reshaped(a, result));
}
// Channels of groups [a b] [c d] become a c b d.
// Channels of groups [a b] [c d] become a c b d.
Results shuffled_channels(const Call& c) {
  const Array a = c.array(0);
  const int64_t groups = c.whole(1, 1), channels = a.shape.at(1);
  const int64_t inner = static_cast<int64_t>(a.at.size()) / (a.shape[0] * channels);
  const Array apart = reshaped(a, {a.shape[0], groups, channels / groups, inner});
  return just(reshaped(permuted(apart, {0, 2, 1, 3}), a.shape));
}

}  // namespace

std::vector<OperatorEntry> placing_operators() {
  return {{"select_copy", copy_of<selected>},
          {"select_backward", seen_backward<selected>},
          {"select_scatter", put_where_seen<selected>},
          {"slice_copy", copy_of<sliced>},
          {"slice_backward", seen_backward<sliced>},
          {"slice_scatter", put_where_seen<sliced>},
          {"diagonal_copy", copy_of<diagonal>},
          {"diagonal_backward", seen_backward<diagonal>},
          {"diagonal_scatter", put_where_seen<diagonal>},
          {"unfold_copy", copy_of<unfolded>},
          {"unfold_backward", seen_backward<unfolded>},
          {"narrow_copy", copy_of<narrowed>},
          {"permute_copy", copy_of<permuted_by>},
          {"transpose_copy", copy_of<transposed_by>},
          {"t_copy", copy_of<turned_around>},
          {"expand_copy", copy_of<expanded>},
          {"view_copy", copy_of<in_another_shape>},
          {"_reshape_copy", copy_of<in_another_shape>},
          {"unsqueeze_copy", copy_of<in_another_shape>},
          {"squeeze_copy", copy_of<in_another_shape>},
          {"alias_copy", copy_of<in_another_shape>},
          {"detach_copy", copy_of<in_another_shape>},
          {"split_copy", split},
          {"split_with_sizes_copy", split_with_sizes},
          {"unbind_copy", unbound},
          {"diag_embed", embedded_diagonal},
          {"trace", trace},
          {"pixel_shuffle", pixels<true>},
          {"pixel_unshuffle", pixels<false>},
          {"channel_shuffle", shuffled_channels}};
}

}  // namespace opguard::proving
