// tests/align/tolerance/sketched_tensor.h: tensors that are cut and put together, and their
// sketches, for the tests of what ranks hold.
#pragma once

#include <cstdint>
#include <vector>

#include "align/tolerance/placement.h"
#include "runtime/fingerprint/slices.h"

namespace opguard {

using Shape = std::vector<int64_t>;

// Of doubles.
struct Tensor {
  Shape shape;
  std::vector<double> values;  // in logical order

  Elements elements() const {
    Elements e{values.data(), 8, shape, Shape(shape.size())};
    int64_t step = 8;
    for (size_t d = shape.size(); d-- > 0; step *= shape[d]) e.strides[d] = step;
    return e;
  }
  RankValue held(uint32_t rank) const {
    return {rank, shape, sketch(elements(), FloatType::float64).sums};
  }
};

inline Tensor part_of(const Tensor& whole, size_t dim, int64_t first, int64_t count) {
  Tensor part{whole.shape, {}};
  part.shape[dim] = count;
  int64_t inner = 1, outer = 1;
  for (size_t d = 0; d < whole.shape.size(); ++d)
    if (d != dim) (d < dim ? outer : inner) *= whole.shape[d];
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = first * inner; i < (first + count) * inner; ++i)
      part.values.push_back(whole.values[static_cast<size_t>(o * whole.shape[dim] * inner + i)]);
  return part;
}

inline Tensor joined(const Tensor& a, const Tensor& b, size_t dim) {
  Tensor both{a.shape, {}};
  both.shape[dim] += b.shape[dim];
  int64_t inner_a = 1, inner_b = 1, outer = 1;
  for (size_t d = 0; d < a.shape.size(); ++d) {
    if (d < dim) outer *= a.shape[d];
    if (d >= dim) inner_a *= a.shape[d];
    if (d >= dim) inner_b *= b.shape[d];
  }
  for (int64_t o = 0; o < outer; ++o) {
    both.values.insert(both.values.end(), a.values.begin() + o * inner_a,
                       a.values.begin() + (o + 1) * inner_a);
    both.values.insert(both.values.end(), b.values.begin() + o * inner_b,
                       b.values.begin() + (o + 1) * inner_b);
  }
  return both;
}

}  // namespace opguard
