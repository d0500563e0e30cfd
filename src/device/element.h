// device/element.h: what one element adds to the layout-free digest
// (docs/formats/record-format.md), for the device and the host alike.
//
// An element counts by its canonical value, whatever type holds it:
//   1. A value that a float32 holds is that float32's bits: bfloat16 1.5 and float64 1.5 are one,
//      int8 3 and float32 3.0 are. Every zero is 0 and every NaN is 0xffc00000.
//   2. Any other value that a float64 holds is that float64's bits: 0.1 of a float64, 2^24 + 1.
//   3. Any other integer is its own 64 bits: 2^53 + 1.
// So a cast that loses nothing keeps the digest, and one that rounds changes it: float64 0.1 and
// float32 0.1 are two values. Zero adds nothing.
//
// Of a row of equal elements the digest is a multiple of one number: 2^k of them leave 64 - k bits
// to tell values apart.
#pragma once

#include "device/gpu.h"
#include "device/plugin.h"

namespace opguard::device {

constexpr uint32_t kNarrowFactor = 0x2c1b3c6du, kNarrowFactor2 = 0x297a2d39u;
constexpr uint32_t kNan32 = 0xffc00000u, kSign32 = 0x80000000u, kInfinity32 = 0x7f800000u;

// What a value of case 1 adds, given the bits of a float32 that is neither a NaN nor -0. The square
// of a mix. It has all 64 bits and no two values share it, where the mix alone would add up like a
// linear function. Two multiplications: after one of them sums of three powers of two met.
OPGUARD_GPU uint64_t plain_term(uint32_t bits) {
  bits ^= bits >> 15;
  bits *= kNarrowFactor;
  bits ^= bits >> 15;
  bits *= kNarrowFactor2;
  return uint64_t{bits} * bits;
}

// The same of any float32.
OPGUARD_GPU uint64_t narrow_term(uint32_t bits) {
  if (bits == kSign32) return 0;
  if ((bits & ~kSign32) > kInfinity32) bits = kNan32;
  return plain_term(bits);
}

// Of cases 2 and 3. x * (2 * x + 1) is a permutation of the 64-bit numbers.
OPGUARD_GPU uint64_t wide_term(uint64_t bits) {
  bits ^= bits >> 29;
  bits *= 0xd6e8feb86659fd93u;
  bits ^= bits >> 32;
  return bits * (2 * bits + 1);
}

OPGUARD_GPU uint32_t bits_of(float x) {
  union {
    float value;
    uint32_t bits;
  } u;
  u.value = x;
  return u.bits;
}

OPGUARD_GPU uint64_t bits_of(double x) {
  union {
    double value;
    uint64_t bits;
  } u;
  u.value = x;
  return u.bits;
}

// By its bits alone: the processor's own conversions would heed a mode that flushes small numbers.
OPGUARD_GPU uint64_t double_term(uint64_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits >> 32) & kSign32;
  const uint32_t exponent = static_cast<uint32_t>(bits >> 52) & 0x7ff;
  const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
  if (exponent == 0x7ff) return narrow_term(fraction != 0 ? kNan32 : sign | kInfinity32);
  if (exponent == 0 && fraction == 0) return 0;
  constexpr uint32_t kBias = 1023 - 127;  // between the two exponents
  if (exponent > kBias && exponent < kBias + 255 && (fraction & 0x1fffffff) == 0)
    return narrow_term(sign | (exponent - kBias) << 23 | static_cast<uint32_t>(fraction >> 29));
  // Below the normal float32: 2^-149 has exponent kBias - 22.
  if (exponent <= kBias && exponent + 22 >= kBias) {
    const unsigned shift = 30 + (kBias - exponent);
    const uint64_t whole = fraction | uint64_t{1} << 52;
    if ((whole >> shift << shift) == whole)
      return narrow_term(sign | static_cast<uint32_t>(whole >> shift));
  }
  return wide_term(bits);
}

// 3, -3 and 2^24: case 1. 2^24 + 1: case 2. 2^53 + 1: case 3.
OPGUARD_GPU uint64_t integer_term(uint64_t bits, bool is_signed) {
  const bool negative = is_signed && bits >> 63;
  const uint64_t magnitude = negative ? 0 - bits : bits;
  const uint32_t sign = negative ? kSign32 : 0;
  if (magnitude >> 24 == 0)
    return narrow_term(magnitude == 0 ? 0 : sign | bits_of(static_cast<float>(magnitude)));
  const double value = static_cast<double>(magnitude);
  // What may round up to 2^64, and cannot be cast back then, is a double where its low bits are 0.
  const bool exact =
      magnitude >> 63 ? (magnitude & 0x7ff) == 0 : static_cast<uint64_t>(value) == magnitude;
  return exact ? double_term(uint64_t{sign} << 32 | bits_of(value)) : wide_term(bits);
}

// A float of `exponent_bits` and `fraction_bits`, as float32 bits; its infinity and NaN aside.
OPGUARD_GPU uint32_t widened(uint32_t bits, unsigned exponent_bits, unsigned fraction_bits,
                             int bias) {
  const uint32_t sign = bits >> (exponent_bits + fraction_bits) << 31;
  const uint32_t fraction = bits & ((1u << fraction_bits) - 1);
  const uint32_t exponent = bits >> fraction_bits & ((1u << exponent_bits) - 1);
  if (exponent != 0)
    return sign | (exponent + static_cast<uint32_t>(127 - bias)) << 23 |
           fraction << (23 - fraction_bits);
  if (fraction == 0) return sign;
  const int power = 1 - bias - static_cast<int>(fraction_bits);
  return sign | (bits_of(static_cast<float>(fraction)) - (static_cast<uint32_t>(-power) << 23));
}

// A float16 as float32 bits.
OPGUARD_GPU uint32_t half_bits(uint32_t bits) {
  if ((bits & 0x7c00) != 0x7c00) return widened(bits, 5, 10, 15);
  return (bits & 0x3ff) != 0 ? kNan32 : bits >> 15 << 31 | kInfinity32;
}

// What an element (of a complex one: each of its parts) adds. bits: its bytes as a number. An
// element of OPGUARD_ELEMENT_FLOAT4X2 holds two.
OPGUARD_GPU uint64_t element_term(uint32_t type, uint64_t bits) {
  const uint32_t low = static_cast<uint32_t>(bits);
  switch (type) {
    case OPGUARD_ELEMENT_BOOL:
      return bits == 0 ? 0 : narrow_term(0x3f800000u);
    case OPGUARD_ELEMENT_UINT8:
    case OPGUARD_ELEMENT_UINT16:
    case OPGUARD_ELEMENT_UINT32:
    case OPGUARD_ELEMENT_UINT64:
      return integer_term(bits, false);
    case OPGUARD_ELEMENT_INT8:
      return integer_term(static_cast<uint64_t>(static_cast<int64_t>(static_cast<int8_t>(low))),
                          true);
    case OPGUARD_ELEMENT_INT16:
      return integer_term(static_cast<uint64_t>(static_cast<int64_t>(static_cast<int16_t>(low))),
                          true);
    case OPGUARD_ELEMENT_INT32:
      return integer_term(static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(low))),
                          true);
    case OPGUARD_ELEMENT_INT64:
      return integer_term(bits, true);
    case OPGUARD_ELEMENT_FLOAT16:
      return narrow_term(half_bits(low));
    case OPGUARD_ELEMENT_BFLOAT16:
      return narrow_term(low << 16);
    case OPGUARD_ELEMENT_FLOAT32:
      return narrow_term(low);
    case OPGUARD_ELEMENT_FLOAT64:
      return double_term(bits);
    case OPGUARD_ELEMENT_FLOAT8_E5M2:
      return narrow_term(half_bits(low << 8));
    case OPGUARD_ELEMENT_FLOAT8_E4M3FN:
      return narrow_term((low & 0x7f) == 0x7f ? kNan32 : widened(low, 4, 3, 7));
    case OPGUARD_ELEMENT_FLOAT8_E5M2FNUZ:
      return narrow_term(low == 0x80 ? kNan32 : widened(low, 5, 2, 16));
    case OPGUARD_ELEMENT_FLOAT8_E4M3FNUZ:
      return narrow_term(low == 0x80 ? kNan32 : widened(low, 4, 3, 8));
    case OPGUARD_ELEMENT_FLOAT8_E8M0FNU:  // 2^(low - 127)
      return narrow_term(low == 0xff ? kNan32 : low == 0 ? 1u << 22 : low << 23);
    case OPGUARD_ELEMENT_FLOAT4X2:
      return narrow_term(widened(low & 15, 2, 1, 1)) + narrow_term(widened(low >> 4, 2, 1, 1));
    default:
      return 0;
  }
}

// Bytes of an element, or of a part of a complex one, as a power of two.
OPGUARD_GPU unsigned element_width(uint32_t type) {
  switch (type) {
    case OPGUARD_ELEMENT_UINT64:
    case OPGUARD_ELEMENT_INT64:
    case OPGUARD_ELEMENT_FLOAT64:
      return 3;
    case OPGUARD_ELEMENT_UINT32:
    case OPGUARD_ELEMENT_INT32:
    case OPGUARD_ELEMENT_FLOAT32:
      return 2;
    case OPGUARD_ELEMENT_UINT16:
    case OPGUARD_ELEMENT_INT16:
    case OPGUARD_ELEMENT_FLOAT16:
    case OPGUARD_ELEMENT_BFLOAT16:
      return 1;
    default:
      return 0;
  }
}

}  // namespace opguard::device
