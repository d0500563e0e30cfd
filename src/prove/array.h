// prove/array.h: tensors of elements, dense and row-major, and what operators do to their shape.
//
//   Array a{{2, 3}, {a0, a1, a2, a3, a4, a5}};
//   permuted(a, {1, 0})                  shape {3, 2}: a0 a3 a1 a4 a2 a5
//   reduce(a, {1}, false, f)             shape {2}: f(a0 a1 a2), f(a3 a4 a5)
//   slice(a, 1, 0, 2)                    shape {2, 2}: a0 a1 a3 a4
//
// Each function makes a new array; none is a view. An element is a number of 4 bytes, so a copy is
// cheap beside making terms. Views of the program are in trace.h: strides over a storage.
//
// Nothing here knows what an element means. Only the two products at the end make terms.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "prove/terms.h"

namespace opguard::proving {

using Shape = std::vector<int64_t>;

int64_t size_of(const Shape& shape);
// A dimension counted from the end where it is negative; throws Unprovable where there is none
// such. Of an array without dimensions 0 and -1 are dimension 0, as torch has it.
size_t dimension(int64_t dim, size_t dims);

// at.size() is size_of(shape), always. Without dimensions it has one element: a number.
struct Array {
  Shape shape;
  std::vector<Element> at;

  static Array filled(const Shape& shape, Element e);
  static Array scalar(Element e) { return {{}, {e}}; }
  size_t dims() const { return shape.size(); }
};

// The common shape; throws Unprovable where there is none.
//   {4, 1} and {3}     {4, 3}
Shape broadcast(std::span<const Shape> shapes);
Array broadcast_to(const Array& a, const Shape& shape);
// f of the elements at each place of the common shape.
Array each(std::span<const Array> of, const std::function<Element(std::span<const Element>)>& f);
Array each(const Array& a, const std::function<Element(Element)>& f);
Array each(const Array& a, const Array& b, const std::function<Element(Element, Element)>& f);
// f of the elements along dims (none: all of them), in row-major order. keep: a reduced dimension
// stays, with extent 1.
Array reduce(const Array& a, const std::vector<int64_t>& dims, bool keep,
             const std::function<Element(std::span<const Element>)>& f);
// order[i]: which dimension becomes dimension i.
Array permuted(const Array& a, const std::vector<size_t>& order);
// f of each row along dim, in and out: both have dim's extent, so what makes fewer elements cuts
// with slice() afterwards. The order of the rows themselves is no promise.
Array along(const Array& a, int64_t dim,
            const std::function<void(std::span<const Element>, std::span<Element>)>& f);
// Bounds as Python's: from the end where negative, and cut to what is there. step is positive.
Array slice(const Array& a, size_t dim, int64_t begin, int64_t end, int64_t step = 1);
// Empty arrays are left out, whatever their shape: torch's cat takes an old [0] beside anything.
Array concatenated(std::span<const Array> of, size_t dim);
// The same elements in the same order; throws Unprovable where their number is another.
Array reshaped(Array a, const Shape& shape);
Array matrix_product(Terms& terms, const Array& a, const Array& b);   // [m, k] [k, n]
Array batched_product(Terms& terms, const Array& a, const Array& b);  // [b, m, k] [b, k, n]

}  // namespace opguard::proving
