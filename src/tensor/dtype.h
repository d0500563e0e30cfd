// tensor/dtype.h: what the bits of an element mean, for every dtype of torch.
//
//   float32 0x3f800000      value 1, rank 1065353216; the next number is of rank 1065353217
//   bfloat16 0x3f80         value 1, rank 16256
//   float8_e4m3fn 0x7f      NaN: there is no infinity
//
// A rank is the number's place among all of its format, so the distance of two ranks counts the
// numbers between (ulp). Counterexample: float4 holds two numbers in a byte. Such types are opaque:
// their bytes are compared, and not what they mean.
#pragma once

#include <cstdint>
#include <string_view>

namespace opguard {

// A binary floating-point format: sign, exponent, mantissa, from the highest bit down.
struct FloatFormat {
  enum Specials : uint8_t {
    ieee,           // all-ones exponent: infinities and NaN
    only_nan,       // all ones but the sign: NaN; no infinity (float8_e4m3fn)
    unsigned_zero,  // the pattern of -0 is the one NaN; no infinity (the fnuz types)
    power,          // no sign, no mantissa; all ones: NaN (float8_e8m0fnu)
    finite,         // neither (float4)
  };
  int exponent_bits, mantissa_bits, bias;
  Specials specials = ieee;

  int total_bits() const { return (specials == power ? 0 : 1) + exponent_bits + mantissa_bits; }
  double largest() const;   // finite
  double smallest() const;  // above zero, subnormals included
  bool is_nan(uint64_t bits) const;
  // Exact: double holds every number of every format here.
  double value(uint64_t bits) const;
  // Order of the numbers: neighbours are 1 apart, both zeros 0. Of no meaning for NaN.
  int64_t rank(uint64_t bits) const;
};

struct Dtype {
  enum Kind : uint8_t { floating, complex, integer, unsigned_integer, boolean, opaque };
  const char* name;    // torch's, without "torch."
  const char* stored;  // safetensors' name, "" if it has none
  Kind kind;
  uint32_t size_bytes;        // of an element
  const FloatFormat* format;  // floating; of either part of a complex number

  bool numbers() const { return kind != opaque; }
  uint32_t parts() const { return kind == complex ? 2 : 1; }  // numbers in an element
  uint32_t part_bytes() const { return size_bytes / parts(); }
};

// Both nullptr if there is none of that name. Dtypes live for ever: their addresses identify them.
const Dtype* dtype_named(std::string_view torch_name);
const Dtype* dtype_stored(std::string_view safetensors_name);

enum class Rounding : uint8_t { nearest_even, toward_zero };

// `value` as the nearest number of the format; an infinity beyond its largest. NaN stays NaN.
double rounded(double value, const FloatFormat& format, Rounding rounding);

// Formats that numbers are passed through on the way; tf32 has no dtype.
struct Narrowing {
  const char* name;  // "bfloat16", "tf32 (truncated)"
  const FloatFormat* format;
  Rounding rounding;
};
struct NarrowingList {
  const Narrowing* first;
  const Narrowing* last;
  const Narrowing* begin() const { return first; }
  const Narrowing* end() const { return last; }
};
// From the widest to the narrowest; float16 before tf32, which has its mantissa.
NarrowingList narrowings();

}  // namespace opguard
