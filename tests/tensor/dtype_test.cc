#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace opguard {
namespace {

const FloatFormat& format(const char* dtype) { return *dtype_named(dtype)->format; }

TEST(Dtype, NamesAreUnique) {
  EXPECT_EQ(dtype_stored("BF16"), dtype_named("bfloat16"));
  EXPECT_EQ(dtype_stored("C64"), dtype_named("complex64"));
  EXPECT_EQ(dtype_stored(""), nullptr);
  EXPECT_EQ(dtype_named("float24"), nullptr);
}

TEST(Dtype, LargestAndSmallest) {
  EXPECT_EQ(format("float16").largest(), 65504);
  EXPECT_EQ(format("bfloat16").largest(), 0x1.fep127);
  EXPECT_EQ(format("float32").largest(), std::numeric_limits<float>::max());
  EXPECT_EQ(format("float64").largest(), std::numeric_limits<double>::max());
  EXPECT_EQ(format("float8_e4m3fn").largest(), 448);
  EXPECT_EQ(format("float8_e5m2").largest(), 57344);
  EXPECT_EQ(format("float8_e4m3fnuz").largest(), 240);
  EXPECT_EQ(format("float8_e5m2fnuz").largest(), 57344);
  EXPECT_EQ(format("float8_e8m0fnu").largest(), 0x1p127);
  EXPECT_EQ(format("float16").smallest(), 0x1p-24);
  EXPECT_EQ(format("float8_e4m3fn").smallest(), 0x1p-9);
}

TEST(Dtype, Values) {
  EXPECT_EQ(format("float16").value(0x3c00), 1);
  EXPECT_EQ(format("float16").value(0x8001), -0x1p-24);
  EXPECT_TRUE(std::isinf(format("float16").value(0x7c00)));
  EXPECT_TRUE(std::isnan(format("float16").value(0x7c01)));
  EXPECT_EQ(format("float8_e4m3fn").value(0x7e), 448);
  EXPECT_TRUE(std::isnan(format("float8_e4m3fn").value(0xff)));
  EXPECT_TRUE(std::isnan(format("float8_e4m3fnuz").value(0x80)));
  EXPECT_EQ(format("float8_e8m0fnu").value(127), 1);
  EXPECT_TRUE(std::isnan(format("float8_e8m0fnu").value(255)));
}

// Neighbours in value are neighbours in rank.
TEST(Dtype, RanksAreInTheOrderOfValues) {
  for (const char* name : {"float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz",
                           "float8_e5m2fnuz", "float8_e8m0fnu"}) {
    const FloatFormat& f = format(name);
    const uint64_t n = uint64_t{1} << f.total_bits();
    for (uint64_t bits = 0; bits + 1 < n / 2; ++bits) {
      if (f.is_nan(bits + 1)) continue;
      EXPECT_EQ(f.rank(bits + 1), f.rank(bits) + 1) << name;
      EXPECT_LT(f.value(bits), f.value(bits + 1)) << name << bits;
    }
  }
  EXPECT_EQ(format("float32").rank(0x80000000), 0);
  EXPECT_EQ(format("float32").rank(0x80000001), -1);
}

// Against the compiler's own conversion, and every number of the small types onto itself.
TEST(Dtype, RoundingIsThatOfTheProcessor) {
  uint64_t state = 1;
  for (int i = 0; i < 200000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double value = std::bit_cast<double>(state);
    if (!std::isfinite(value)) continue;
    EXPECT_EQ(rounded(value, format("float32"), Rounding::nearest_even),
              static_cast<double>(static_cast<float>(value)))
        << value;
    const float f = std::bit_cast<float>(static_cast<uint32_t>(state >> 32));
    if (!std::isfinite(f)) continue;
    // bfloat16 is the upper half of a float.
    uint32_t bits = std::bit_cast<uint32_t>(f);
    bits += 0x7fff + (bits >> 16 & 1);
    EXPECT_EQ(rounded(f, format("bfloat16"), Rounding::nearest_even),
              static_cast<double>(std::bit_cast<float>(bits & 0xffff0000)));
  }
  for (const char* name : {"float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"}) {
    const FloatFormat& f = format(name);
    for (uint64_t bits = 0; bits < uint64_t{1} << f.total_bits(); ++bits) {
      const double value = f.value(bits);
      if (!std::isfinite(value)) continue;
      EXPECT_EQ(rounded(value, f, Rounding::nearest_even), value) << name << bits;
      // Halfway to the next: to the even one.
      const double next = f.value(bits + 1);
      if (f.rank(bits) < 0 || f.rank(bits + 1) != f.rank(bits) + 1 || !std::isfinite(next))
        continue;
      EXPECT_EQ(rounded((value + next) / 2, f, Rounding::nearest_even), bits & 1 ? next : value)
          << name << bits;
      EXPECT_EQ(rounded((value + next) / 2, f, Rounding::toward_zero), value) << name << bits;
    }
  }
  EXPECT_EQ(rounded(65519.99, format("float16"), Rounding::nearest_even), 65504);
  EXPECT_TRUE(std::isinf(rounded(65520, format("float16"), Rounding::nearest_even)));
  EXPECT_TRUE(std::isinf(rounded(1e300, format("float8_e4m3fn"), Rounding::nearest_even)));
}

}  // namespace
}  // namespace opguard
