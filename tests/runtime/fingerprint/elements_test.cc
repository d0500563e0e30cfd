// The layout-free digest: its loops give what the definition says, and it has the algebra for which
// it is kept.
#include <gtest/gtest.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <algorithm>

#include "levels.h"
#include "reference.h"
#include "runtime/fingerprint/fingerprint.h"
#include "runtime/fingerprint/lane_sums.h"

namespace opguard {
namespace {

void expect(const Elements& e, const ElementName& type) {
  const uint64_t expected = ElementsReference::of(logical(e), type);
  at_every_level([&] {
    for (unsigned threads : {1u, 3u}) EXPECT_EQ(digest(e, type.dtype, threads).elements, expected);
  });
}

TEST(Elements, EveryLengthOfEveryType) {
  for (const ElementName& type : kElementNames) {
    SCOPED_TRACE(type.dtype);
    const auto bytes = random_bytes(type.size * 4097, 1);
    for (int64_t n = 0; n <= 4097; n += n < 140 || n >= 4090 ? 1 : 395)
      expect(row_of(bytes.data(), type.size, n), type);
  }
}

TEST(Elements, EveryValueOfSmallTypes) {
  std::vector<uint16_t> all(65536);
  std::iota(all.begin(), all.end(), uint16_t{0});
  for (const ElementName& type : kElementNames) {
    SCOPED_TRACE(type.dtype);
    if (type.size == 2) expect(row_of(all.data(), 2, 65536), type);
    // One after the other: a sum of all would not tell which are exchanged.
    for (size_t i = 0; i < 65536 && type.size <= 2; i += type.size == 1 ? 256 : 7)
      EXPECT_EQ(digest(row_of(&all[i], type.size, 1), type.dtype).elements,
                ElementsReference::element(type.dtype, reinterpret_cast<const uint8_t*>(&all[i])))
          << i;
    for (uint32_t i = 0; i < 256 && type.size == 1; ++i) {
      const auto byte = static_cast<uint8_t>(i);
      EXPECT_EQ(digest(row_of(&byte, 1, 1), type.dtype).elements,
                ElementsReference::element(type.dtype, &byte))
          << i;
    }
  }
}

// Where the canonical value changes its kind: the ends of float32 and float64, rounding, infinity.
TEST(Elements, ValuesAtTheBordersOfTheirKind) {
  std::vector<double> reals = {0.0, -0.0, INFINITY, -INFINITY, NAN, -NAN, 0.1, 1e300, 1e-300};
  std::vector<int64_t> integers = {0, INT64_MAX, INT64_MIN};
  for (int exponent : {-1074, -1022, -151, -150, -149, -148, -127, -126, -125, -1,  0,   1,
                       23,    24,    25,   52,   53,   54,   62,   63,   64,   127, 128, 1023})
    for (double factor :
         {1.0, 1.5, 1 + 0x1p-22, 1 + 0x1p-23, 1 + 0x1p-24, 1 + 0x1p-52, 2 - 0x1p-23})
      for (double sign : {1.0, -1.0}) reals.push_back(sign * std::ldexp(factor, exponent));
  for (int shift = 0; shift < 63; ++shift)
    for (int64_t beside : {-1, 0, 1})
      for (int64_t sign : {-1, 1}) integers.push_back(sign * ((int64_t{1} << shift) + beside));
  auto each = [](const auto& values, const ElementName& type) {
    using T = std::decay_t<decltype(values[0])>;
    for (const T& value : values) {
      // Among values of the usual kind, and alone.
      std::vector<T> some(37, T{3});
      some[20] = value;
      expect(row_of(some.data(), sizeof(T), 37), type);
      expect(row_of(&value, sizeof(T), 1), type);
    }
  };
  each(reals, {"float64", 8});
  each(std::vector<float>(reals.begin(), reals.end()), {"float32", 4});
  each(integers, {"int64", 8});
  each(std::vector<uint64_t>(integers.begin(), integers.end()), {"uint64", 8});
  each(std::vector<int32_t>(integers.begin(), integers.end()), {"int32", 4});
  each(std::vector<uint32_t>(integers.begin(), integers.end()), {"uint32", 4});
}

TEST(Elements, EveryLayout) {
  std::mt19937 random(12);
  for (int round = 0; round < 1500; ++round) {
    const Layout layout(random, round % 40 == 0 ? 24 : 7);
    const Elements e = layout.elements();
    for (const ElementName& type : kElementNames)
      if (type.size == e.size && random() % 4 == 0) expect(e, type);
  }
}

// Rows with gaps, and matrices that are transposed, as numbers of every size and mostly small ones:
// rare numbers make their block be done again.
TEST(Elements, ShortRowsAndTransposedOnes) {
  std::mt19937 random(13);
  for (const ElementName& type : kElementNames)
    for (int round = 0; round < 30; ++round) {
      const auto size = static_cast<int64_t>(type.size);
      const int64_t rows = 1 + random() % 70, count = 1 + random() % (round % 3 == 0 ? 900 : 90);
      const int64_t gap = random() % 5 * size;
      auto bytes = random_bytes(static_cast<size_t>(rows * count * size + (rows + count) * gap), 7);
      if (round % 2 == 0)
        for (size_t i = 0; i < bytes.size(); ++i)
          if (i % type.size != 0 && random() % 400 != 0) bytes[i] = 0;
      expect({bytes.data(), type.size, {rows, count}, {count * size + gap, size}}, type);
      expect({bytes.data(), type.size, {rows, count}, {size, rows * size + gap}}, type);
    }
}

TEST(Elements, LargeTensorsOnSeveralThreads) {
  const auto bytes = random_bytes(5 << 20, 3);
  const void* d = bytes.data();
  const std::pair<Elements, ElementName> large[] = {
      {{d, 4, {1 << 20}, {4}}, {"float32", 4}},
      {{d, 2, {1031, 1001}, {2002, 2}}, {"bfloat16", 2}},
      {{d, 2, {33, 50001}, {100002, 2}}, {"float16", 2}},
      {{d, 4, {1000, 1000}, {4, 4000}}, {"float32", 4}},
      {{d, 8, {3, 100000}, {800000, 8}}, {"int64", 8}},
      {{d, 1, {3, 1000001}, {1000001, 1}}, {"uint8", 1}},
      {{d, 16, {300001}, {16}}, {"complex128", 16}},
  };
  for (const auto& [e, type] : large) expect(e, type);
}

TEST(Elements, WhatHasNoNumbersHasNoDigest) {
  const auto bytes = random_bytes(1200, 3);
  EXPECT_FALSE(digest(row_of(bytes.data(), 3, 7), "").elements);
  EXPECT_FALSE(digest(row_of(bytes.data(), 12, 100), "").elements);
  EXPECT_EQ(digest(row_of(bytes.data(), 4, 0), "float32").elements, 0u);
}

#if defined(__x86_64__)
// torch.set_flush_denormal(True): small numbers are still themselves.
TEST(Elements, HeedsNoModeOfTheProcessor) {
  std::vector<float> small(100, 0x1p-130f);
  const Elements e = row_of(small.data(), 4, 100);
  const uint64_t expected = 100 * ElementsReference::narrow(0x1p-130f);
  const unsigned mode = _mm_getcsr();
  at_every_level([&] {
    _mm_setcsr(mode | 0x8040);
    const auto got = digest(e, "float32").elements;
    EXPECT_EQ(_mm_getcsr() & 0x8040, 0x8040u);
    _mm_setcsr(mode);
    EXPECT_EQ(got, expected);
  });
}
#endif

// ---- What it is for.

template <typename T>
uint64_t of(const std::vector<T>& values, const char* dtype) {
  return digest(row_of(values.data(), sizeof(T), static_cast<int64_t>(values.size())), dtype)
      .elements.value();
}

TEST(Elements, CastsThatLoseNothingKeepIt) {
  std::vector<float> floats;
  for (int i = -200; i <= 200; ++i) floats.push_back(static_cast<float>(i) / 8);
  std::vector<uint16_t> brain;
  for (float f : floats) {
    uint32_t bits;
    std::memcpy(&bits, &f, 4);
    brain.push_back(static_cast<uint16_t>(bits >> 16));
    ASSERT_EQ(bits & 0xffff, 0u);
  }
  const uint64_t expected = of(floats, "float32");
  EXPECT_EQ(of(std::vector<double>(floats.begin(), floats.end()), "float64"), expected);
  EXPECT_EQ(of(brain, "bfloat16"), expected);
  std::vector<int64_t> integers;
  for (int64_t i = -100; i <= 100; ++i) integers.push_back(i);
  const uint64_t of_integers = of(integers, "int64");
  EXPECT_EQ(of(std::vector<int8_t>(integers.begin(), integers.end()), "int8"), of_integers);
  EXPECT_EQ(of(std::vector<int32_t>(integers.begin(), integers.end()), "int32"), of_integers);
  EXPECT_EQ(of(std::vector<float>(integers.begin(), integers.end()), "float32"), of_integers);
  EXPECT_EQ(of(std::vector<uint8_t>{0, 1, 1}, "bool"), of(std::vector<float>{1, 1}, "float32"));
  // A cast that rounds does not.
  EXPECT_NE(of(std::vector<double>{0.1}, "float64"), of(std::vector<float>{0.1f}, "float32"));
}

TEST(Elements, OrderShapeAndPaddingDoNotMatterCountDoes) {
  std::mt19937 random(2);
  std::vector<float> values(300);
  for (float& v : values) v = static_cast<float>(random() % 16);
  const uint64_t whole = of(values, "float32");
  std::vector<float> other = values;
  std::shuffle(other.begin(), other.end(), random);
  other.insert(other.begin() + 7, 50, 0.0f);
  other.push_back(-0.0f);
  EXPECT_EQ(of(other, "float32"), whole);
  const std::vector<float> left(values.begin(), values.begin() + 100),
      right(values.begin() + 100, values.end());
  EXPECT_EQ(of(left, "float32") + of(right, "float32"), whole);
  std::vector<float> thrice = values;
  for (int i = 0; i < 2; ++i) thrice.insert(thrice.end(), values.begin(), values.end());
  EXPECT_EQ(of(thrice, "float32"), 3 * whole);
  EXPECT_EQ(digest({values.data(), 4, {5, 300}, {0, 4}}, "float32").elements, 5 * whole);
  values[17] += 1;
  EXPECT_NE(of(values, "float32"), whole);
}

// Sums of three elements out of few values, as counts, masks and grids have them: no two that are
// not the same values meet.
TEST(Elements, SumsOfFewPlainValuesDiffer) {
  auto no_two_meet = [](const char* name, auto value_of) {
    std::vector<uint64_t> terms, sums;
    for (int i = 1; i <= 200; ++i) terms.push_back(ElementsReference::narrow(value_of(i)));
    for (size_t i = 0; i < terms.size(); ++i)
      for (size_t j = i; j < terms.size(); ++j)
        for (size_t k = j; k < terms.size(); ++k) sums.push_back(terms[i] + terms[j] + terms[k]);
    std::sort(sums.begin(), sums.end());
    EXPECT_EQ(std::adjacent_find(sums.begin(), sums.end()), sums.end()) << name;
  };
  no_two_meet("counts", [](int i) { return static_cast<float>(i); });
  no_two_meet("both signs", [](int i) { return static_cast<float>(i % 2 ? i / 2 + 1 : -i / 2); });
  no_two_meet("powers of two", [](int i) { return std::ldexp(1.0f, i - 100); });
  no_two_meet("a grid", [](int i) { return static_cast<float>(i) / 64; });
  no_two_meet("last bits", [](int i) { return 1 + static_cast<float>(i) * 0x1p-23f; });
}

}  // namespace
}  // namespace opguard
