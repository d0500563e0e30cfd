// prove/rational.h: the coefficients of terms, exact. 1/3, 0.1 as 1/10, a loss scale of 65536.
//
// Numerator and denominator are 64 bits. What needs more is no result but Unprovable: nothing is
// rounded, so nothing wrong is ever proved.
//
//   Rational(2, -4)                    -1/2: reduced, the sign above, so that == compares fields
//   Rational(1, 3) + Rational(1, 6)    1/2
//   power(Rational(10), 19)            Unprovable
//
// Counterexample: floats are not this exact. rational_of() guesses the fraction that was meant, and
// the guess is one of the assumptions of a proof. The cost: 16 bytes each, and a gcd in each
// operation on fractions.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace opguard::proving {

// Why nothing can be said: an operator without a meaning, a branch on a value, a number too large.
// It ends in the verdict `unknown`, never in `refuted`. Its text is shown to the user.
class Unprovable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Rational {
 public:
  constexpr Rational() = default;
  constexpr Rational(int64_t whole) : numerator_(whole) {}  // NOLINT: a whole number is one
  Rational(int64_t numerator, int64_t denominator);         // denominator not 0

  int64_t numerator() const { return numerator_; }
  int64_t denominator() const { return denominator_; }
  bool zero() const { return numerator_ == 0; }
  bool whole() const { return denominator_ == 1; }
  double value() const {
    return static_cast<double>(numerator_) / static_cast<double>(denominator_);
  }
  std::string text() const;  // "3", "-1/2"

  friend Rational operator+(const Rational& a, const Rational& b);
  friend Rational operator*(const Rational& a, const Rational& b);
  friend Rational operator-(const Rational& a) { return Rational(-1) * a; }
  friend Rational operator-(const Rational& a, const Rational& b) { return a + -b; }
  friend Rational operator/(const Rational& a, const Rational& b);  // b not 0
  friend bool operator==(const Rational&, const Rational&) = default;

 private:
  int64_t numerator_ = 0, denominator_ = 1;  // no common factor; the denominator is positive
};

// base^exponent; base not 0 where the exponent is negative.
Rational power(const Rational& base, int64_t exponent);

// Whole numbers beside it: the largest below or equal, the nearest to zero, the nearest (of two the
// even one).
int64_t floor_of(const Rational& x);
int64_t trunc_of(const Rational& x);
int64_t round_of(const Rational& x);

// An exponent of a term, which is kept in 32 bits: Unprovable where it is larger than a million.
int32_t exponent_of(int64_t exact);

// The rational that a float is the rounding of. A float32 is one with a denominator up to 256 or of
// at most 5 decimal digits. One that needs a float64 has up to 1024, or 12 digits.
// 0.1f is 1/10, 0.33333334f is 1/3. None for 0.54030231 (a cosine) and 0.70710678.
std::optional<Rational> rational_of(double value);

}  // namespace opguard::proving
