// The table of dtypes, and what a number becomes in a narrower one.
//
//   rounded(0.1, bfloat16, nearest_even)    0.10009765625
//   rounded(0.1, bfloat16, toward_zero)     0.099609375
//   rounded(70000, float16, nearest_even)   infinity: 65504 is the largest
//
// All is computed in double, whose 52 bits of mantissa hold every other format's numbers.
// Counterexample: to add half and cut would round a tie up, where the hardware takes the even one.
// 1 + 2^-8 is such a tie of bfloat16, and becomes 1.
//
// The cost: some integer operations where the result is normal; a division where it is subnormal.
#include "tensor/dtype.h"

#include <bit>
#include <cmath>
#include <limits>

namespace opguard {
namespace {

constexpr FloatFormat kF64 = {11, 52, 1023}, kF32 = {8, 23, 127}, kTf32 = {8, 10, 127},
                      kF16 = {5, 10, 15}, kBf16 = {8, 7, 127}, kE5m2 = {5, 2, 15},
                      kE4m3 = {4, 3, 7, FloatFormat::only_nan},
                      kE5m2fnuz = {5, 2, 16, FloatFormat::unsigned_zero},
                      kE4m3fnuz = {4, 3, 8, FloatFormat::unsigned_zero},
                      kE8m0 = {8, 0, 127, FloatFormat::power};

// Names of safetensors' Dtype enumeration. Its fnuz names are younger than most readers, and its F4
// counts half bytes: those three are stored as bytes.
constexpr Dtype kDtypes[] = {
    {"float32", "F32", Dtype::floating, 4, &kF32},
    {"bfloat16", "BF16", Dtype::floating, 2, &kBf16},
    {"float16", "F16", Dtype::floating, 2, &kF16},
    {"float64", "F64", Dtype::floating, 8, &kF64},
    {"float8_e4m3fn", "F8_E4M3", Dtype::floating, 1, &kE4m3},
    {"float8_e5m2", "F8_E5M2", Dtype::floating, 1, &kE5m2},
    {"float8_e8m0fnu", "F8_E8M0", Dtype::floating, 1, &kE8m0},
    {"float8_e4m3fnuz", "", Dtype::floating, 1, &kE4m3fnuz},
    {"float8_e5m2fnuz", "", Dtype::floating, 1, &kE5m2fnuz},
    {"complex64", "C64", Dtype::complex, 8, &kF32},
    {"complex128", "", Dtype::complex, 16, &kF64},
    {"complex32", "", Dtype::complex, 4, &kF16},
    {"int64", "I64", Dtype::integer, 8, nullptr},
    {"int32", "I32", Dtype::integer, 4, nullptr},
    {"int16", "I16", Dtype::integer, 2, nullptr},
    {"int8", "I8", Dtype::integer, 1, nullptr},
    {"uint8", "U8", Dtype::unsigned_integer, 1, nullptr},
    {"uint16", "U16", Dtype::unsigned_integer, 2, nullptr},
    {"uint32", "U32", Dtype::unsigned_integer, 4, nullptr},
    {"uint64", "U64", Dtype::unsigned_integer, 8, nullptr},
    {"bool", "BOOL", Dtype::boolean, 1, nullptr},
    {"qint8", "", Dtype::integer, 1, nullptr},
    {"quint8", "", Dtype::unsigned_integer, 1, nullptr},
    {"qint32", "", Dtype::integer, 4, nullptr},
    {"quint4x2", "", Dtype::opaque, 1, nullptr},
    {"quint2x4", "", Dtype::opaque, 1, nullptr},
    {"float4_e2m1fn_x2", "", Dtype::opaque, 1, nullptr},
    {"bits8", "", Dtype::opaque, 1, nullptr},
    {"bits1x8", "", Dtype::opaque, 1, nullptr},
    {"bits2x4", "", Dtype::opaque, 1, nullptr},
    {"bits4x2", "", Dtype::opaque, 1, nullptr},
    {"bits16", "", Dtype::opaque, 2, nullptr},
};

constexpr Narrowing kNarrowings[] = {
    {"float32", &kF32, Rounding::nearest_even},
    {"float16", &kF16, Rounding::nearest_even},
    {"tf32", &kTf32, Rounding::nearest_even},
    {"tf32 (truncated)", &kTf32, Rounding::toward_zero},
    {"bfloat16", &kBf16, Rounding::nearest_even},
    {"bfloat16 (truncated)", &kBf16, Rounding::toward_zero},
    {"float8_e4m3fn", &kE4m3, Rounding::nearest_even},
    {"float8_e5m2", &kE5m2, Rounding::nearest_even},
};

uint64_t low_bits(int n) { return (uint64_t{1} << n) - 1; }

}  // namespace

// All ones, less what the format keeps for infinity and NaN.
double FloatFormat::largest() const {
  uint64_t bits = low_bits(exponent_bits + mantissa_bits);
  if (specials == ieee) bits -= uint64_t{1} << mantissa_bits;
  if (specials == only_nan || specials == power) bits -= 1;
  return value(bits);
}

double FloatFormat::smallest() const {
  return specials == power ? std::ldexp(1.0, -bias) : std::ldexp(1.0, 1 - bias - mantissa_bits);
}

bool FloatFormat::is_nan(uint64_t bits) const {
  const uint64_t magnitude = bits & low_bits(exponent_bits + mantissa_bits);
  switch (specials) {
    case ieee:
      return magnitude > low_bits(exponent_bits) << mantissa_bits;
    case only_nan:
    case power:
      return magnitude == low_bits(exponent_bits + mantissa_bits);
    case unsigned_zero:
      return bits == uint64_t{1} << (exponent_bits + mantissa_bits);
    case finite:
      return false;
  }
  return false;
}

double FloatFormat::value(uint64_t bits) const {
  if (mantissa_bits == 52) return std::bit_cast<double>(bits);
  if (mantissa_bits == 23) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  if (is_nan(bits)) return std::numeric_limits<double>::quiet_NaN();
  if (specials == power) return std::ldexp(1.0, static_cast<int>(bits & 0xff) - bias);
  const int exponent = static_cast<int>(bits >> mantissa_bits & low_bits(exponent_bits));
  const double fraction = static_cast<double>(bits & low_bits(mantissa_bits));
  const double sign = bits >> (exponent_bits + mantissa_bits) & 1 ? -1.0 : 1.0;
  if (specials == ieee && exponent == static_cast<int>(low_bits(exponent_bits)))
    return sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - mantissa_bits);
  return sign *
         std::ldexp(fraction + std::ldexp(1.0, mantissa_bits), exponent - bias - mantissa_bits);
}

// Sign and magnitude, so that both zeros are 0. As a plain integer -0 would be far from 0.
int64_t FloatFormat::rank(uint64_t bits) const {
  const int sign_at = exponent_bits + mantissa_bits;
  const int64_t magnitude = static_cast<int64_t>(bits & low_bits(sign_at));
  return specials != power && (bits >> sign_at & 1) ? -magnitude : magnitude;
}

const Dtype* dtype_named(std::string_view name) {
  for (const Dtype& dtype : kDtypes)
    if (name == dtype.name) return &dtype;
  return nullptr;
}

const Dtype* dtype_stored(std::string_view name) {
  for (const Dtype& dtype : kDtypes)
    if (dtype.stored[0] != '\0' && name == dtype.stored) return &dtype;
  return nullptr;
}

double rounded(double value, const FloatFormat& format, Rounding rounding) {
  if (value == 0 || !std::isfinite(value) || format.mantissa_bits >= 52) return value;
  double result;
  uint64_t bits = std::bit_cast<uint64_t>(value);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  if (exponent >= 1 - format.bias) {
    // Both normal: the bits below the mantissa's last are rounded away; a carry runs on upwards.
    const int drop = 52 - format.mantissa_bits;
    if (rounding == Rounding::nearest_even) bits += low_bits(drop - 1) + (bits >> drop & 1);
    result = std::bit_cast<double>(bits & ~low_bits(drop));
  } else {
    // Subnormal there: the numbers are multiples of one step.
    const double quantum = std::ldexp(1.0, 1 - format.bias - format.mantissa_bits);
    const double steps = value / quantum;
    result =
        (rounding == Rounding::nearest_even ? std::nearbyint(steps) : std::trunc(steps)) * quantum;
    if (result == 0) result = std::copysign(0.0, value);
  }
  // Infinity's exponent, or the largest finite one: only from there on is the limit asked for.
  const int top = (1 << format.exponent_bits) - 2 - format.bias;
  if (exponent >= top && std::abs(result) > format.largest())
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  return result;
}

NarrowingList narrowings() { return {std::begin(kNarrowings), std::end(kNarrowings)}; }

}  // namespace opguard
