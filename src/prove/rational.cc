// Sums and quotients are made in 128 bits and then reduced: two 64-bit fractions cannot overflow
// that.
//
//   1/3 + 1/6     (1 * 6 + 1 * 3) / 18 = 9/18 in 128 bits, 1/2 in 64
//
// Products need no 128-bit division: the factors are reduced crosswise before they are multiplied.
#include "prove/rational.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>

namespace opguard::proving {
namespace {

using Wide = __int128;

// The least int64 is refused too: it has no negative, and -a must not overflow.
int64_t narrow(Wide x) {
  if (x > std::numeric_limits<int64_t>::max() || x < -std::numeric_limits<int64_t>::max())
    throw Unprovable("a coefficient has more than 63 bits");
  return static_cast<int64_t>(x);
}

// Euclid's, since std::gcd takes no 128 bits.
Wide common(Wide a, Wide b) {
  if (a < 0) a = -a;
  if (b < 0) b = -b;
  while (b != 0) {
    const Wide rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

Rational reduced(Wide numerator, Wide denominator) {
  const Wide factor = common(numerator, denominator);
  if (factor > 1) {
    numerator /= factor;
    denominator /= factor;
  }
  if (denominator < 0) {
    numerator = -numerator;
    denominator = -denominator;
  }
  return {narrow(numerator), narrow(denominator)};
}

// Whether the float is the rounding of p / q, as the narrower type that it fits.
bool rounds_to(double value, double quotient) {
  if (value == quotient) return true;
  return static_cast<double>(static_cast<float>(value)) == value &&
         static_cast<float>(quotient) == static_cast<float>(value);
}

}  // namespace

Rational::Rational(int64_t numerator, int64_t denominator)
    : numerator_(numerator), denominator_(denominator) {
  if (denominator_ == 1) return;
  const int64_t factor = std::gcd(numerator_, denominator_);
  if (factor > 1) {
    numerator_ /= factor;
    denominator_ /= factor;
  }
  if (denominator_ < 0) {
    numerator_ = -numerator_;
    denominator_ = -denominator_;
  }
}

std::string Rational::text() const {
  return std::to_string(numerator_) + (whole() ? "" : "/" + std::to_string(denominator_));
}

Rational operator+(const Rational& a, const Rational& b) {
  if (a.denominator_ == b.denominator_) {
    const int64_t sum = narrow(Wide{a.numerator_} + b.numerator_);
    return a.whole() ? Rational(sum) : Rational(sum, a.denominator_);
  }
  return reduced(Wide{a.numerator_} * b.denominator_ + Wide{b.numerator_} * a.denominator_,
                 Wide{a.denominator_} * b.denominator_);
}

Rational operator*(const Rational& a, const Rational& b) {
  if (a == Rational(1)) return b;
  if (b == Rational(1)) return a;
  if (a.zero() || b.zero()) return {};
  // Common factors first, in 64 bits: what is left has none (Knuth, TAOCP 2, 4.5.1).
  const int64_t x = std::gcd(a.numerator_, b.denominator_);
  const int64_t y = std::gcd(b.numerator_, a.denominator_);
  Rational product;
  product.numerator_ = narrow(Wide{a.numerator_ / x} * (b.numerator_ / y));
  product.denominator_ = narrow(Wide{a.denominator_ / y} * (b.denominator_ / x));
  return product;
}

Rational operator/(const Rational& a, const Rational& b) {
  if (b.zero()) throw Unprovable("a division by zero");
  return reduced(Wide{a.numerator_} * b.denominator_, Wide{a.denominator_} * b.numerator_);
}

// By squaring. The last square is not made: nobody needs it, and it might not fit.
Rational power(const Rational& base, int64_t exponent) {
  if (exponent < 0) return Rational(1) / power(base, -exponent);
  Rational result(1), square = base;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result = result * square;
    if (exponent > 1) square = square * square;
  }
  return result;
}

int32_t exponent_of(int64_t exact) {
  constexpr int64_t kLargest = 1'000'000;
  if (exact > kLargest || exact < -kLargest) throw Unprovable("an exponent above a million");
  return static_cast<int32_t>(exact);
}

// C++ divides towards zero: -1 / 2 is 0, and the floor of -1/2 is -1.
int64_t floor_of(const Rational& x) {
  const int64_t q = x.numerator() / x.denominator();
  return x.numerator() % x.denominator() < 0 ? q - 1 : q;
}
int64_t trunc_of(const Rational& x) { return x.numerator() / x.denominator(); }
int64_t round_of(const Rational& x) {
  const int64_t below = floor_of(x);
  const Rational over = x - Rational(below), half(1, 2);
  if (over == half) return below + (below & 1);
  return (over - half).numerator() > 0 ? below + 1 : below;
}

// Tried in an order that prefers what a programmer writes: whole numbers, short fractions, powers
// of two, few digits. Any float is a whole number over a power of two. That one is seldom meant,
// and is returned only where it is among these.
std::optional<Rational> rational_of(double value) {
  if (!std::isfinite(value)) return {};
  if (value == std::floor(value) && std::fabs(value) < 9e15)
    return Rational(static_cast<int64_t>(value));
  const bool single = static_cast<double>(static_cast<float>(value)) == value;
  // A small denominator, by continued fractions. Of random float32 one in 250 has one by chance.
  const int64_t largest = single ? 256 : 1024;
  double x = std::fabs(value);
  int64_t p0 = 0, q0 = 1, p1 = 1, q1 = 0;
  for (int step = 0; step < 12 && x < 1e12; ++step) {
    const auto whole = static_cast<int64_t>(std::floor(x));
    const int64_t p2 = p0 + whole * p1, q2 = q0 + whole * q1;
    if (q2 > largest || p2 > (int64_t{1} << 50)) break;
    p0 = p1, q0 = q1, p1 = p2, q1 = q2;
    if (rounds_to(std::fabs(value), static_cast<double>(p1) / static_cast<double>(q1)))
      return Rational(value < 0 ? -p1 : p1, q1);
    if (x == static_cast<double>(whole)) break;
    x = 1 / (x - static_cast<double>(whole));
  }
  // A power of two below: 2^-20.
  int exponent = 0;
  if (const double mantissa = std::frexp(value, &exponent);
      std::fabs(mantissa) == 0.5 && exponent > -60 && exponent < 1)
    return Rational(value < 0 ? -1 : 1, int64_t{1} << (1 - exponent));
  // Few decimal digits: 1e-5, 0.999. A float64 may have more of them than a float32.
  for (int digits = 1; digits <= (single ? 5 : 12); ++digits) {
    char text[40];
    std::snprintf(text, sizeof(text), "%.*e", digits - 1, std::fabs(value));
    if (!rounds_to(std::fabs(value), std::strtod(text, nullptr))) continue;
    const int power_of_ten = std::atoi(std::strchr(text, 'e') + 1) - (digits - 1);
    if (power_of_ten < -17 || power_of_ten > 0) return {};
    int64_t mantissa = 0;
    for (const char* c = text; *c != 'e'; ++c)
      if (*c != '.') mantissa = mantissa * 10 + (*c - '0');
    return Rational(value < 0 ? -mantissa : mantissa, 1) / power(Rational(10), -power_of_ten);
  }
  return {};
}

}  // namespace opguard::proving
