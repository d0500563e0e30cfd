// prove/windows.h: windows over images, and mixes along one dimension, of convolutions, pools and
// whatever makes an image larger or smaller.
//
//   an image's row of 5, kernel 3, stride 2, padding 1
//   window 0 covers -1 0 1, of which -1 is padding     lies() is false for tap 0
//   window 1 covers 1 2 3
//   window 2 covers 3 4 5, of which 5 is padding
//
// What is linear along each dimension is a Mix: a row that averages two is {{0, 1/2}, {1, 1/2}}.
// Its gradient is the same Mix with rows and columns exchanged, so it is written once for both.
//
// Counterexample: a maximum is no mix (operators_pooling.cc).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "prove/operators.h"

namespace opguard::proving {

// Calls f(position) for each position within the shape, the last dimension fastest.
template <typename F>
void positions_in(const Shape& shape, F f) {
  std::vector<int64_t> at(shape.size(), 0);
  for (int64_t n = 0; n < size_of(shape); ++n) {
    f(at);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
}
// The place of a position in row-major order.
int64_t flat_in(const Shape& shape, const std::vector<int64_t>& at);
// One number stands for all dimensions. Throws Unprovable for any other count than 1 or dims.
std::vector<int64_t> spread(std::vector<int64_t> given, size_t dims);

// One number a dimension, in elements. Windows and taps are counted from 0.
struct Window {
  std::vector<int64_t> stride, padding, dilation;
  // Where tap k of the window at `small` lies in `large`; false: outside, in the padding, and `at`
  // is of no use.
  bool lies(const std::vector<int64_t>& small, const std::vector<int64_t>& k, const Shape& large,
            std::vector<int64_t>& at) const;
};

// Each row of the result is a mix of rows along a dimension: place and share.
struct Mix {
  int64_t from = 0;  // how many rows go in
  std::vector<std::vector<std::pair<int64_t, Rational>>> rows;
};
Array mixed(Terms& t, const Array& a, size_t dim, const Mix& mix);
// The gradient: the same mix, transposed.
Array mixed_back(Terms& t, const Array& g, size_t dim, const Mix& mix);
// One mix for each of the last dimensions.
Array mixed_all(Terms& t, Array a, const std::vector<Mix>& mixes, bool back);

}  // namespace opguard::proving
