// Images made larger or smaller, and padded by what is beside: each a mix along each dimension.
//
//   a row [a b] to 4, linear     a, 3/4 a + 1/4 b, 1/4 a + 3/4 b, b
//   a row [a b] to 4, nearest    a a b b
//   reflection by 1 of [a b c]   b a b c b
//
// Of linear and cubic, result i stands at (i + 1/2) step - 1/2 in the image, where step is from /
// to. With aligned corners it is at i step, and step is (from - 1) / (to - 1). Shares are
// fractions, exactly.
//
// Counterexample: kernels compute places in floats. Of nearest, where rounding may choose another
// element, that is Unprovable. Of the others it only changes the last digits.
//
// The gradient is the same mix transposed (windows.h).
#include <algorithm>
#include <cmath>

#include "prove/meanings.h"
#include "prove/windows.h"

namespace opguard::proving {
namespace {

// ---- Padding

// Row i of the result is one element: beside the image the outermost one, or the one mirrored at
// it.
// Row i of the result is one element: beside the image the outermost one, or the one mirrored at
// it.
template <bool kReflects>
Mix padding_of(int64_t from, int64_t before, int64_t after) {
  Mix mix{from, {}};
  for (int64_t i = -before; i < from + after; ++i) {
    int64_t at = std::clamp<int64_t>(i, 0, from - 1);
    if (kReflects && i < 0) at = -i;
    if (kReflects && i >= from) at = 2 * (from - 1) - i;
    if (at < 0 || at >= from) throw Unprovable("a reflection of what is not there");
    mix.rows.push_back({{at, Rational(1)}});
  }
  return mix;
}
// padding: the last dimension's two, then that before it.
template <size_t kDims, bool kReflects, bool kBack>
Results padded_by_beside(const Call& c) {
  const Array a = c.array(0);
  const Shape image = kBack ? c.tensor(1).shape : a.shape;
  const std::vector<int64_t> padding = c.list(kBack ? 2 : 1);
  if (padding.size() != 2 * kDims) throw Unprovable("a padding of other dimensions");
  std::vector<Mix> mixes;
  for (size_t d = 0; d < kDims; ++d) {
    const size_t pair = 2 * (kDims - 1 - d);
    mixes.push_back(padding_of<kReflects>(image.at(image.size() - kDims + d), padding[pair],
                                          padding[pair + 1]));
  }
  return just(mixed_all(c.terms(), a, mixes, kBack));
}

// ---- Resizing

enum class Way { nearest, nearest_exact, linear, cubic };

// How far one step of the result goes in the image: 1 / the scale that was asked for, or by sizes.
Rational step_between(const Call& c, size_t scale, int64_t from, int64_t to) {
  const double asked = c.number(scale, 0);
  if (asked <= 0) return Rational(from, to);
  const auto exact = rational_of(asked);
  if (!exact) throw Unprovable("a scale of many digits");
  return Rational(1) / *exact;
}
int64_t nearest_place(const Rational& exact, double single, int64_t from) {
  // ATen multiplies float32. Where that rounds past a whole number nothing is said.
  if (floor_of(exact) != static_cast<int64_t>(std::floor(single)))
    throw Unprovable("a place in an image between two elements");
  return std::clamp<int64_t>(floor_of(exact), 0, from - 1);
}
Mix nearest_of(int64_t from, int64_t to, const Rational& step, bool exactly) {
  Mix mix{from, {}};
  const auto single = static_cast<float>(step.value());
  for (int64_t i = 0; i < to; ++i) {
    const Rational middle = Rational(i) + (exactly ? Rational(1, 2) : Rational(0));
    const float rounded = static_cast<float>(middle.value()) * single;
    mix.rows.push_back({{nearest_place(middle * step, rounded, from), Rational(1)}});
  }
  return mix;
}
// Where result i stands in the image, in elements: between two of them as a rule.
// Where result i stands in the image, in elements: between two of them as a rule.
Rational place_of(int64_t i, const Rational& step, bool aligned) {
  if (aligned) return Rational(i) * step;
  return (Rational(i) + Rational(1, 2)) * step - Rational(1, 2);
}
// Of the two elements beside the place, by how near each is. Beyond the ends it is the end.
// Of the two elements beside the place, by how near each is. Beyond the ends it is the end.
Mix linear_of(int64_t from, int64_t to, const Rational& step, bool aligned) {
  Mix mix{from, {}};
  for (int64_t i = 0; i < to; ++i) {
    Rational at = place_of(i, step, aligned);
    if (at.numerator() < 0) at = Rational(0);
    const int64_t low = std::min(floor_of(at), from - 1), high = std::min(low + 1, from - 1);
    const Rational share = at - Rational(low);
    mix.rows.push_back({{low, Rational(1) - share}, {high, share}});
  }
  return mix;
}
// Keys' cubic with a = -3/4, of a distance below 1 and below 2.
Rational cubic_near(const Rational& x) {
  const Rational a(-3, 4);
  return ((a + Rational(2)) * x - (a + Rational(3))) * x * x + Rational(1);
}
Rational cubic_far(const Rational& x) {
  const Rational a(-3, 4);
  return ((a * x - Rational(5) * a) * x + Rational(8) * a) * x - Rational(4) * a;
}
// Of the four elements beside the place; beyond the ends an end counts several times.
// Of the four elements beside the place; beyond the ends an end counts several times.
Mix cubic_of(int64_t from, int64_t to, const Rational& step, bool aligned) {
  Mix mix{from, {}};
  for (int64_t i = 0; i < to; ++i) {
    const Rational at = place_of(i, step, aligned);
    const int64_t low = floor_of(at);
    const Rational x = at - Rational(low), one(1);
    const Rational shares[] = {cubic_far(x + one), cubic_near(x), cubic_near(one - x),
                               cubic_far(Rational(2) - x)};
    auto& row = mix.rows.emplace_back();
    for (int64_t k = 0; k < 4; ++k)
      row.emplace_back(std::clamp<int64_t>(low - 1 + k, 0, from - 1), shares[k]);
  }
  return mix;
}
// (input, output_size, [align_corners], scales), backward (gradient, output_size, input_size, ...).
template <size_t kDims, Way kWay, bool kBack>
Results resized(const Call& c) {
  const Array a = c.array(0);
  c.pass_over(1);
  const Shape image = kBack ? Shape(c.list(2)) : a.shape, result = c.node().results.at(0).shape;
  const Shape& larger = kBack ? a.shape : result;
  size_t next = kBack ? 3 : 2;
  const bool can_align = kWay == Way::linear || kWay == Way::cubic;
  const bool aligned = can_align && c.flag(next++, false);
  std::vector<Mix> mixes;
  for (size_t d = 0; d < kDims; ++d) {
    const size_t dim = image.size() - kDims + d;
    const int64_t from = image.at(dim), to = larger.at(dim);
    Rational step = step_between(c, next + d, from, to);
    if (aligned) step = to > 1 ? Rational(from - 1, to - 1) : Rational(0);
    if (kWay == Way::linear)
      mixes.push_back(linear_of(from, to, step, aligned));
    else if (kWay == Way::cubic)
      mixes.push_back(cubic_of(from, to, step, aligned));
    else
      mixes.push_back(nearest_of(from, to, step, kWay == Way::nearest_exact));
  }
  return just(mixed_all(c.terms(), a, mixes, kBack));
}

}  // namespace

std::vector<OperatorEntry> resizing_operators() {
  return {{"reflection_pad1d", padded_by_beside<1, true, false>},
          {"reflection_pad1d_backward", padded_by_beside<1, true, true>},
          {"reflection_pad2d", padded_by_beside<2, true, false>},
          {"reflection_pad2d_backward", padded_by_beside<2, true, true>},
          {"reflection_pad3d", padded_by_beside<3, true, false>},
          {"reflection_pad3d_backward", padded_by_beside<3, true, true>},
          {"replication_pad1d", padded_by_beside<1, false, false>},
          {"replication_pad1d_backward", padded_by_beside<1, false, true>},
          {"replication_pad2d", padded_by_beside<2, false, false>},
          {"replication_pad2d_backward", padded_by_beside<2, false, true>},
          {"replication_pad3d", padded_by_beside<3, false, false>},
          {"replication_pad3d_backward", padded_by_beside<3, false, true>},
          {"upsample_nearest1d", resized<1, Way::nearest, false>},
          {"upsample_nearest1d_backward", resized<1, Way::nearest, true>},
          {"upsample_nearest2d", resized<2, Way::nearest, false>},
          {"upsample_nearest2d_backward", resized<2, Way::nearest, true>},
          {"upsample_nearest3d", resized<3, Way::nearest, false>},
          {"upsample_nearest3d_backward", resized<3, Way::nearest, true>},
          {"_upsample_nearest_exact2d", resized<2, Way::nearest_exact, false>},
          {"_upsample_nearest_exact2d_backward", resized<2, Way::nearest_exact, true>},
          {"upsample_linear1d", resized<1, Way::linear, false>},
          {"upsample_linear1d_backward", resized<1, Way::linear, true>},
          {"upsample_bilinear2d", resized<2, Way::linear, false>},
          {"upsample_bilinear2d_backward", resized<2, Way::linear, true>},
          {"upsample_trilinear3d", resized<3, Way::linear, false>},
          {"upsample_trilinear3d_backward", resized<3, Way::linear, true>},
          {"upsample_bicubic2d", resized<2, Way::cubic, false>},
          {"upsample_bicubic2d_backward", resized<2, Way::cubic, true>}};
}

}  // namespace opguard::proving
