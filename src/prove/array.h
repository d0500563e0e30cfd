// prove/array.h: tensors of elements, dense and row-major, and what operators do to their shape.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "prove/terms.h"

namespace opguard::proving {

using Shape = std::vector<int64_t>;

int64_t size_of(const Shape& shape);
// A dimension counted from the end where it is negative.
size_t dimension(int64_t dim, size_t dims);

struct Array {
  Shape shape;
  std::vector<Element> at;

  static Array filled(const Shape& shape, Element e);
  static Array scalar(Element e) { return {{}, {e}}; }
  size_t dims() const { return shape.size(); }
};

// The common shape; throws Unprovable where there is none.
Shape broadcast(std::span<const Shape> shapes);
Array broadcast_to(const Array& a, const Shape& shape);
// f of the elements at each place of the common shape.
Array each(std::span<const Array> of, const std::function<Element(std::span<const Element>)>& f);
Array each(const Array& a, const std::function<Element(Element)>& f);
Array each(const Array& a, const Array& b, const std::function<Element(Element, Element)>& f);
// f of the elements along dims (none: all of them).
Array reduce(const Array& a, const std::vector<int64_t>& dims, bool keep,
             const std::function<Element(std::span<const Element>)>& f);
// order[i]: which dimension becomes dimension i.
Array permuted(const Array& a, const std::vector<size_t>& order);
// dim last: f of each row along it, in and out.
Array along(const Array& a, int64_t dim,
            const std::function<void(std::span<const Element>, std::span<Element>)>& f);
Array slice(const Array& a, size_t dim, int64_t begin, int64_t end, int64_t step = 1);
Array concatenated(std::span<const Array> of, size_t dim);
Array reshaped(Array a, const Shape& shape);
Array matrix_product(Terms& terms, const Array& a, const Array& b);   // [m, k] [k, n]
Array batched_product(Terms& terms, const Array& a, const Array& b);  // [b, m, k] [b, k, n]

}  // namespace opguard::proving
