// Is b computed from a, element by element? Each question is one sentence about all numbers.
//
//   a [1, 2, 3]         b [-1, -2, -3]          sign_flip: b is -a
//   a [0.1, 0.2]        b [0.10009766, ...]     cast: b is a cast through bfloat16
//   a [1, 2, 3]         b [0.5, 1, 1.5]         scaled: b is a times 0.5
//   a [1, 2, 3]         b [1, 0, 0]             filled: where they differ, b is 0 throughout
//
// A factor is found as an interval. Each pair leaves the factors that round to it, and what all of
// them leave together is named by its roundest number. Counterexamples: one number alone is a
// multiple of any other, so two magnitudes are needed. An interval that holds 1 says no more than
// that numbers were rounded.
//
// The cost: a question reads both tensors until the first number that denies it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "tensor/elements.h"
#include "tensor/explain.h"

namespace opguard {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr uint64_t kRounding = 4;  // ulp: what another order of a short sum leaves

// Every number of both in blocks: f(bits_a, bits_b, values_a, values_b, count) until it says false.
template <typename F>
bool each_block(const Tensor& a, const Tensor& b, F f) {
  const Elements1D x(a), y(b);
  uint64_t bits_a[kBlock], bits_b[kBlock];
  double values_a[kBlock], values_b[kBlock];
  for (uint64_t at = 0; at < x.count(); at += kBlock) {
    const size_t n = static_cast<size_t>(std::min<uint64_t>(kBlock, x.count() - at));
    x.bits(at, n, bits_a);
    y.bits(at, n, bits_b);
    x.values(bits_a, n, values_a);
    y.values(bits_b, n, values_b);
    if (!f(bits_a, bits_b, values_a, values_b, n)) return false;
  }
  return true;
}

std::string value_text(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

// What holds of every number that differs.
struct Signs {
  bool zeros = true, payloads = true, nan_a = true, nan_b = true, flips = true;
  bool all_flipped = true;
};

Signs signs_of(const Tensor& a, const Tensor& b) {
  Signs s;
  const Dtype& dtype = *a.dtype;
  const FloatFormat* format = dtype.format;
  // A type without a sign, or whose bit pattern of -0 is its NaN, has no bit to flip.
  const bool has_sign = format && format->specials != FloatFormat::power &&
                        format->specials != FloatFormat::unsigned_zero;
  const uint64_t sign =
      has_sign ? uint64_t{1} << (format->exponent_bits + format->mantissa_bits) : 0;
  each_block(a, b, [&](auto* bits_a, auto* bits_b, auto* x, auto* y, size_t n) {
    for (size_t i = 0; i < n; ++i) {
      if (bits_a[i] == bits_b[i]) {
        s.all_flipped &= x[i] == 0;
        continue;
      }
      const bool nan_x = std::isnan(x[i]), nan_y = std::isnan(y[i]);
      s.zeros &= format && x[i] == 0 && y[i] == 0;
      s.payloads &= nan_x && nan_y;
      s.nan_a &= nan_x && !nan_y;
      s.nan_b &= nan_y && !nan_x;
      const bool flip = format ? sign != 0 && (bits_a[i] ^ bits_b[i]) == sign && !nan_x
                               : dtype.kind == Dtype::integer && x[i] == -y[i];
      s.flips &= flip;
    }
    // Until none of them can hold any more.
    return s.zeros || s.payloads || s.nan_a || s.nan_b || s.flips;
  });
  return s;
}

void explain_signs(const Tensor& a, const Tensor& b, std::vector<Explanation>& out) {
  const Signs s = signs_of(a, b);
  if (s.zeros) out.push_back({"signed_zero", "where they differ, one has 0.0 and the other -0.0"});
  if (s.payloads) out.push_back({"nan_payload", "where they differ, both are NaN, of other bits"});
  if (s.nan_a || s.nan_b) {
    Explanation e{"nan", std::string("where they differ, ") + (s.nan_a ? "a" : "b") +
                             " is NaN and the other is not"};
    e.side = s.nan_a ? "a" : "b";
    out.push_back(e);
  }
  if (s.flips && !s.zeros) {
    Explanation e{"sign_flip", s.all_flipped ? "b is -a" : "where they differ, b is -a"};
    out.push_back(e);
  }
}

bool same(double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); }

// Is `to` what becomes of `from` on its way through the narrower type, everywhere?
bool cast_of(const Tensor& from, const Tensor& to, const Narrowing& narrow) {
  // Beyond the largest number: infinity, or NaN, or the largest, by the type and who casts.
  const double largest = narrow.format->largest();
  bool any = false;
  bool all = each_block(from, to, [&](auto*, auto*, auto* x, auto* y, size_t n) {
    for (size_t i = 0; i < n; ++i) {
      const double through = rounded(x[i], *narrow.format, narrow.rounding);
      if (std::isinf(through)) {
        if (!same(y[i], through) &&
            !(std::isfinite(x[i]) && y[i] == std::copysign(largest, x[i])) &&
            !(std::isnan(y[i]) && narrow.format->specials != FloatFormat::ieee))
          return false;
        continue;
      }
      if (!same(y[i], through)) return false;
      // A tensor of zeros is a cast through anything.
      any |= y[i] != 0 && !std::isnan(y[i]);
    }
    return true;
  });
  return all && any;
}

void explain_casts(const Tensor& a, const Tensor& b, std::vector<Explanation>& out) {
  const FloatFormat& own = *a.dtype->format;
  for (const bool of_a : {true, false})
    for (const Narrowing& narrow : narrowings()) {
      // A type that holds every number of this one leaves all as it is.
      if (narrow.format->mantissa_bits >= own.mantissa_bits &&
          narrow.format->exponent_bits >= own.exponent_bits)
        continue;
      if (!cast_of(of_a ? a : b, of_a ? b : a, narrow)) continue;
      Explanation e{"cast",
                    std::string(of_a ? "b is a" : "a is b") + " cast through " + narrow.name};
      e.through = narrow.name;
      e.side = of_a ? "b" : "a";
      out.push_back(e);
    }
}

// The roundest number of the interval.
// Small fractions first, 1/8 rather than 0.125000001; else the fewest digits that lie in the
// interval.
double roundest(double low, double high) {
  for (double n = 1; n <= 1024; ++n)
    for (const double c : {n, 1 / n, -n, -1 / n})
      if (low <= c && c <= high) return c;
  const double middle = low / 2 + high / 2;
  char text[40];
  for (int digits = 1; digits < 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, middle);
    const double c = std::strtod(text, nullptr);
    if (low <= c && c <= high) return c;
  }
  return middle;
}

// Each pair leaves the factors that round to it; is there one for all?
void explain_factor(const Tensor& a, const Tensor& b, std::vector<Explanation>& out) {
  const FloatFormat& format = *a.dtype->format;
  const double smallest = format.smallest();
  double low = -kInfinity, high = kInfinity, first = 0;
  bool several = false;
  bool all = each_block(a, b, [&](auto*, auto*, auto* x, auto* y, size_t n) {
    for (size_t i = 0; i < n; ++i) {
      if (!std::isfinite(x[i]) || !std::isfinite(y[i])) {
        if (!same(std::abs(x[i]), std::abs(y[i]))) return false;
        continue;
      }
      if (x[i] == 0) {
        if (y[i] != 0) return false;
        continue;
      }
      // y stands for the numbers that round to it, half a step to either side. At 0 a step is the
      // smallest number.
      const int exponent = y[i] == 0 ? -10000 : std::ilogb(y[i]);
      double half = std::max(std::ldexp(0.5, exponent - format.mantissa_bits), smallest / 2);
      half += std::abs(y[i]) * 1e-15;  // of our own division
      double from = (y[i] - half) / x[i], to = (y[i] + half) / x[i];
      if (from > to) std::swap(from, to);
      low = std::max(low, from);
      high = std::min(high, to);
      if (low > high) return false;
      if (first == 0) first = std::abs(x[i]);
      several |= std::abs(x[i]) != first;
    }
    return true;
  });
  // One number alone is always a multiple of another.
  if (!all || !several || (low <= 1 && 1 <= high) || (low <= 0 && 0 <= high)) return;
  Explanation e{"scaled", ""};
  e.factor = roundest(low, high);
  e.text = "b is a times " + value_text(e.factor);
  if (e.factor != -1) out.push_back(e);  // said by sign_flip
}

// Of two elements at least: one alone always "is the same throughout". Where both sides are filled,
// b is named.
void explain_filling(const Tensor& a, const Tensor& b, const Difference& difference,
                     std::vector<Explanation>& out) {
  if (difference.differing < 2) return;
  std::optional<ElementBits> fill[2];
  bool holds[2] = {true, true};
  for (uint64_t i = 0, n = a.count(); i < n && (holds[0] || holds[1]); ++i) {
    const ElementBits bits[2] = {element_bits(a, i), element_bits(b, i)};
    if (bits[0] == bits[1]) continue;
    for (int side = 0; side < 2; ++side) {
      if (!fill[side]) {
        fill[side] = bits[side];
      }
      holds[side] = holds[side] && *fill[side] == bits[side];
    }
  }
  for (int side = 1; side >= 0; --side) {
    if (!holds[side]) continue;
    Explanation e{"filled", ""};
    e.side = side ? "b" : "a";
    e.value = side ? difference.first_b : difference.first_a;
    e.text = "where they differ, " + e.side + " is " + e.value + " throughout";
    out.push_back(e);
    return;
  }
}

}  // namespace

void explain_values(const Tensor& a, const Tensor& b, const Difference& difference,
                    std::vector<Explanation>& out) {
  if (a.dtype->numbers()) explain_signs(a, b, out);
  if (a.dtype->format != nullptr) {
    explain_casts(a, b, out);
    explain_factor(a, b, out);
  }
  if (a.dtype->kind != Dtype::boolean) explain_filling(a, b, difference, out);
  if (difference.max_ulp && *difference.max_ulp > 0 && *difference.max_ulp <= kRounding &&
      difference.nan_a + difference.nan_b + difference.infinite == 0)
    out.push_back({"rounding", "no number is more than " + std::to_string(*difference.max_ulp) +
                                   " ulp away: another rounding or order of summation"});
}

}  // namespace opguard
