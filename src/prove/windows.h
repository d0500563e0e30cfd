// prove/windows.h: windows over images, and mixes along one dimension, of convolutions, pools and
// whatever makes an image larger or smaller.
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
int64_t flat_in(const Shape& shape, const std::vector<int64_t>& at);
// One number stands for all dimensions.
std::vector<int64_t> spread(std::vector<int64_t> given, size_t dims);

struct Window {
  std::vector<int64_t> stride, padding, dilation;
  // Where tap k of the window at `small` lies; false: outside.
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
