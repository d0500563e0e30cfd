// Arrays are walked by an index that counts up like an odometer, and by an offset that follows it:
//
//   shape {2, 3}, strides {1, 2} (a transposed array)
//   index   00 01 02 10 11 12
//   offset   0  2  4  1  3  5
//
// A step adds one stride, a carry takes extent * stride back. So no offset is multiplied out for
// each element. A stride of 0 repeats an element, which is all that broadcasting is.
#include "prove/array.h"

#include <algorithm>
#include <numeric>

namespace opguard::proving {
namespace {

// How far each dimension of the common shape moves in an array of its own; 0: it is repeated.
std::vector<int64_t> strides_in(const Shape& own, const Shape& common) {
  std::vector<int64_t> strides(common.size(), 0);
  int64_t stride = 1;
  for (size_t i = own.size(); i-- > 0;) {
    const size_t at = i + common.size() - own.size();
    strides[at] = own[i] == 1 ? 0 : stride;
    stride *= own[i];
  }
  return strides;
}

}  // namespace

int64_t size_of(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

size_t dimension(int64_t dim, size_t dims) {
  const int64_t n = static_cast<int64_t>(std::max<size_t>(dims, 1));
  if (dim < -n || dim >= n) throw Unprovable("a dimension that is not there");
  return static_cast<size_t>(dim < 0 ? dim + n : dim);
}

Array Array::filled(const Shape& shape, Element e) {
  return {shape, std::vector<Element>(static_cast<size_t>(size_of(shape)), e)};
}

Shape broadcast(std::span<const Shape> shapes) {
  size_t dims = 0;
  for (const Shape& s : shapes) dims = std::max(dims, s.size());
  Shape common(dims, 1);
  for (const Shape& s : shapes)
    for (size_t i = 0; i < s.size(); ++i) {
      int64_t& here = common[i + dims - s.size()];
      if (s[i] == 1 || s[i] == here) continue;
      if (here != 1) throw Unprovable("shapes do not fit");
      here = s[i];
    }
  return common;
}

// One odometer, an offset for each array. `here` is used again: f must not keep the span.
Array each(std::span<const Array> of, const std::function<Element(std::span<const Element>)>& f) {
  std::vector<Shape> shapes;
  for (const Array& a : of) shapes.push_back(a.shape);
  Array result{broadcast(shapes), {}};
  const int64_t count = size_of(result.shape);
  std::vector<std::vector<int64_t>> strides;
  for (const Array& a : of) strides.push_back(strides_in(a.shape, result.shape));
  std::vector<int64_t> offsets(of.size(), 0), index(result.shape.size(), 0);
  std::vector<Element> here(of.size());
  result.at.reserve(static_cast<size_t>(count));
  for (int64_t n = 0; n < count; ++n) {
    for (size_t k = 0; k < of.size(); ++k) here[k] = of[k].at[static_cast<size_t>(offsets[k])];
    result.at.push_back(f(here));
    for (size_t d = index.size(); d-- > 0;) {
      ++index[d];
      for (size_t k = 0; k < of.size(); ++k) offsets[k] += strides[k][d];
      if (index[d] < result.shape[d]) break;
      for (size_t k = 0; k < of.size(); ++k) offsets[k] -= strides[k][d] * result.shape[d];
      index[d] = 0;
    }
  }
  return result;
}

Array each(const Array& a, const std::function<Element(Element)>& f) {
  Array result{a.shape, {}};
  result.at.reserve(a.at.size());
  for (Element e : a.at) result.at.push_back(f(e));
  return result;
}

Array each(const Array& a, const Array& b, const std::function<Element(Element, Element)>& f) {
  const Array both[] = {a, b};
  return each(both, [&](std::span<const Element> x) { return f(x[0], x[1]); });
}

// The second array is there for its shape; which element it holds does not matter.
Array broadcast_to(const Array& a, const Shape& shape) {
  if (a.shape == shape) return a;
  const Array both[] = {a, Array::filled(shape, 0)};
  return each(both, [](std::span<const Element> x) { return x[0]; });
}

// Walks the result in order, and the array by strides in the new order.
Array permuted(const Array& a, const std::vector<size_t>& order) {
  std::vector<int64_t> strides(a.dims(), 1);
  for (size_t i = a.dims(); i-- > 1;) strides[i - 1] = strides[i] * a.shape[i];
  Array result;
  std::vector<int64_t> step;
  for (size_t d : order) {
    result.shape.push_back(a.shape[d]);
    step.push_back(strides[d]);
  }
  std::vector<int64_t> index(order.size(), 0);
  int64_t offset = 0;
  result.at.reserve(a.at.size());
  for (size_t n = 0; n < a.at.size(); ++n) {
    result.at.push_back(a.at[static_cast<size_t>(offset)]);
    for (size_t d = index.size(); d-- > 0;) {
      offset += step[d];
      if (++index[d] < result.shape[d]) break;
      offset -= step[d] * result.shape[d];
      index[d] = 0;
    }
  }
  return result;
}

// The reduced dimensions are moved behind the others. Then each group of elements is one stretch.
Array reduce(const Array& a, const std::vector<int64_t>& dims, bool keep,
             const std::function<Element(std::span<const Element>)>& f) {
  std::vector<bool> gone(a.dims(), dims.empty());
  for (int64_t d : dims)
    if (a.dims() > 0) gone[dimension(d, a.dims())] = true;
  std::vector<size_t> order;
  Shape rest, kept;
  for (size_t d = 0; d < a.dims(); ++d)
    if (!gone[d]) {
      order.push_back(d);
      rest.push_back(a.shape[d]);
    }
  for (size_t d = 0; d < a.dims(); ++d)
    if (gone[d]) order.push_back(d);
  for (size_t d = 0; d < a.dims(); ++d) kept.push_back(gone[d] ? 1 : a.shape[d]);
  const Array apart = permuted(a, order);
  const auto rows = static_cast<size_t>(size_of(rest));
  const size_t length = rows == 0 ? 0 : apart.at.size() / rows;
  Array result{keep ? kept : rest, {}};
  for (size_t r = 0; r < rows; ++r)
    result.at.push_back(f(std::span(apart.at).subspan(r * length, length)));
  return result;
}

// By swapping dim with the last: a swap is its own inverse, so one order leads there and back.
Array along(const Array& a, int64_t dim,
            const std::function<void(std::span<const Element>, std::span<Element>)>& f) {
  if (a.dims() == 0) {
    Array result = a;
    f(a.at, result.at);
    return result;
  }
  const size_t d = dimension(dim, a.dims());
  std::vector<size_t> order(a.dims());
  std::iota(order.begin(), order.end(), size_t{0});
  std::swap(order[d], order.back());
  const Array last = permuted(a, order);
  Array result = last;
  const auto length = static_cast<size_t>(last.shape.back());
  for (size_t r = 0; length > 0 && r < last.at.size(); r += length)
    f(std::span(last.at).subspan(r, length), std::span(result.at).subspan(r, length));
  return permuted(result, order);
}

// An entry of dim is a stretch of `inner` elements, of which there is one in each of the `outer`
// rows.
Array slice(const Array& a, size_t dim, int64_t begin, int64_t end, int64_t step) {
  Array result{a.shape, {}};
  begin = std::clamp<int64_t>(begin < 0 ? begin + a.shape[dim] : begin, 0, a.shape[dim]);
  end = std::clamp<int64_t>(end < 0 ? end + a.shape[dim] : end, begin, a.shape[dim]);
  result.shape[dim] = (end - begin + step - 1) / step;
  int64_t outer = 1, inner = 1;
  for (size_t d = 0; d < dim; ++d) outer *= a.shape[d];
  for (size_t d = dim + 1; d < a.dims(); ++d) inner *= a.shape[d];
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = begin; i < end; i += step) {
      const auto from = a.at.begin() + (o * a.shape[dim] + i) * inner;
      result.at.insert(result.at.end(), from, from + inner);
    }
  return result;
}

// `outer` rows, of each row every array's stretch in turn.
Array concatenated(std::span<const Array> of, size_t dim) {
  Array result;
  int64_t outer = 1;
  for (const Array& a : of) {
    if (a.at.empty()) continue;
    if (result.shape.empty()) {
      result.shape = a.shape;
      for (size_t d = 0; d < dim; ++d) outer *= a.shape[d];
    } else {
      result.shape[dim] += a.shape[dim];
    }
  }
  for (int64_t o = 0; o < outer; ++o)
    for (const Array& a : of) {
      if (a.at.empty()) continue;
      const auto length = static_cast<int64_t>(a.at.size()) / outer;
      const auto from = a.at.begin() + o * length;
      result.at.insert(result.at.end(), from, from + length);
    }
  return result;
}

Array reshaped(Array a, const Shape& shape) {
  if (static_cast<size_t>(size_of(shape)) != a.at.size()) throw Unprovable("sizes do not fit");
  a.shape = shape;
  return a;
}

// m * n dots of length k, over rows: b is transposed first, so that its columns are stretches.
Array matrix_product(Terms& terms, const Array& a, const Array& b) {
  const int64_t m = a.shape[0], k = a.shape[1], n = b.shape[1];
  if (b.shape[0] != k) throw Unprovable("shapes do not fit");
  Array result{{m, n}, {}};
  result.at.reserve(static_cast<size_t>(m * n));
  const Array columns = permuted(b, {1, 0});
  const auto row = [k](const Array& of, int64_t i) {
    return std::span(of.at).subspan(static_cast<size_t>(i * k), static_cast<size_t>(k));
  };
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) result.at.push_back(terms.dot(row(a, i), row(columns, j)));
  return result;
}

Array batched_product(Terms& terms, const Array& a, const Array& b) {
  Array result{{a.shape[0], a.shape[1], b.shape[2]}, {}};
  for (int64_t i = 0; i < a.shape[0]; ++i) {
    const Array x = reshaped(slice(a, 0, i, i + 1), {a.shape[1], a.shape[2]});
    const Array y = reshaped(slice(b, 0, i, i + 1), {b.shape[1], b.shape[2]});
    const Array z = matrix_product(terms, x, y);
    result.at.insert(result.at.end(), z.at.begin(), z.at.end());
  }
  return result;
}

}  // namespace opguard::proving
