// os1: what the definition in record/sketch.h says, at every level, of every type and layout.
// Pieces at their places add up. How well it estimates.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "levels.h"
#include "runtime/fingerprint/sketch.h"

namespace opguard {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

size_t size_of(FloatType type) {
  return type == FloatType::float64 ? 8 : type == FloatType::float32 ? 4 : 2;
}

// To the nearest of that type; for the halves of numbers that they hold.
void store(double x, FloatType type, char* to) {
  const auto single = static_cast<float>(x);
  if (type == FloatType::float64) {
    std::memcpy(to, &x, 8);
  } else if (type == FloatType::float32) {
    std::memcpy(to, &single, 4);
  } else if (type == FloatType::bfloat16) {
    const auto bits = static_cast<uint16_t>(std::bit_cast<uint32_t>(single) >> 16);
    std::memcpy(to, &bits, 2);
  } else {
    uint16_t bits = std::signbit(x) ? 0x8000 : 0;
    if (std::isnan(x)) {
      bits |= 0x7e00;
    } else if (std::isinf(x)) {
      bits |= 0x7c00;
    } else if (x != 0) {
      int exponent;
      const double mantissa = std::frexp(std::fabs(x), &exponent);  // in [0.5, 1)
      bits |= static_cast<uint16_t>(exponent + 14) << 10 |
              (static_cast<uint16_t>(mantissa * 2048) & 0x3ff);
    }
    std::memcpy(to, &bits, 2);
  }
}

// A tensor with memory of its own. The dimensions lie in memory in the order of `nesting`, the
// outermost first.
struct Tensor {
  Tensor(std::vector<int64_t> shape, FloatType type, std::vector<size_t> nesting = {})
      : type(type) {
    elements.shape = shape;
    elements.size = static_cast<uint32_t>(size_of(type));
    elements.strides.resize(shape.size());
    if (nesting.empty())
      for (size_t d = 0; d < shape.size(); ++d) nesting.push_back(d);
    int64_t step = elements.size;
    for (size_t i = nesting.size(); i-- > 0;) {
      elements.strides[nesting[i]] = step;
      step *= std::max<int64_t>(shape[nesting[i]], 1);
    }
    memory.resize(static_cast<size_t>(step) + 1);
    elements.data = memory.data();
  }

  uint64_t count() const {
    uint64_t n = 1;
    for (int64_t d : elements.shape) n *= static_cast<uint64_t>(d);
    return n;
  }
  // In logical order.
  void fill(const std::vector<double>& values) {
    for (uint64_t i = 0; i < count(); ++i) {
      uint64_t rest = i;
      int64_t at = 0;
      for (size_t d = elements.shape.size(); d-- > 0;) {
        at += static_cast<int64_t>(rest % static_cast<uint64_t>(elements.shape[d])) *
              elements.strides[d];
        rest /= static_cast<uint64_t>(elements.shape[d]);
      }
      store(values[i], type, memory.data() + at);
    }
  }

  FloatType type;
  Elements elements;
  std::vector<char> memory;
};

// Multiples of 1/8 below 8: every type holds them.
std::vector<double> numbers(uint64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> values(count);
  for (double& v : values) v = (static_cast<double>(random() % 127) - 63) / 8;
  return values;
}

SketchSums defined(const std::vector<double>& values, uint64_t columns) {
  SketchSums y{};
  for (uint64_t i = 0; i < values.size(); ++i) {
    const uint64_t r = i / columns, j = i % columns;
    const SketchRow row = sketch_row(r);
    const bool negative = row.negative != ((sketch_column_signs(j / 64) >> (j % 64) & 1) != 0);
    y[(j + row.rotation) % 64] += negative ? -values[i] : values[i];
  }
  return y;
}

constexpr FloatType kTypes[] = {FloatType::float16, FloatType::bfloat16, FloatType::float32,
                                FloatType::float64};

TEST(Sketch, IsWhatTheDefinitionSays) {
  at_every_level([] {
    for (FloatType type : kTypes) {
      uint64_t seed = 1;
      for (int64_t columns = 1; columns < 2400; columns += columns < 140 ? 1 : 37) {
        Tensor x({6, columns}, type);
        const auto values = numbers(x.count(), seed++);
        x.fill(values);
        // Sums of these numbers are exact, so there is no rounding to allow for.
        ASSERT_EQ(sketch(x.elements, type).sums, defined(values, static_cast<uint64_t>(columns)))
            << columns;
      }
    }
  });
}

TEST(Sketch, OfEveryLayout) {
  const std::vector<std::vector<size_t>> nestings = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (FloatType type : kTypes)
    for (const auto& shape : std::vector<std::vector<int64_t>>{
             {2, 3, 5}, {7, 1, 130}, {4, 65, 3}, {1, 1, 1}, {3, 200, 300}}) {
      const auto values = numbers(Tensor(shape, type).count(), 5);
      for (const auto& nesting : nestings) {
        Tensor x(shape, type, nesting);
        x.fill(values);
        EXPECT_EQ(sketch(x.elements, type).sums, defined(values, static_cast<uint64_t>(shape[2])));
      }
    }
}

TEST(Sketch, EmptyAndWithoutDimensions) {
  Tensor scalar({}, FloatType::float32);
  scalar.fill({2.5});
  EXPECT_EQ(sketch(scalar.elements, FloatType::float32).sums, defined({2.5}, 1));
  Tensor empty({4, 0}, FloatType::float32);
  EXPECT_EQ(norm(sketch(empty.elements, FloatType::float32).sums), 0);
  EXPECT_EQ(norm(sketch(scalar.elements, FloatType::none).sums), 0);
}

TEST(Sketch, OfALargeTensorDoesNotDependOnThreads) {
  for (const auto& shape : std::vector<std::vector<int64_t>>{
           {3'000'000}, {1, 3'000'000}, {3000, 1000}, {300'000, 10}}) {
    for (FloatType type : kTypes) {
      Tensor x(shape, type);
      std::mt19937_64 random(3);
      std::vector<double> values(x.count());
      for (double& v : values) v = std::normal_distribution<>()(random);
      x.fill(values);
      const Sketch alone = sketch(x.elements, type);
      EXPECT_EQ(sketch(x.elements, type, nullptr, 4), alone);
      at_every_level([&] { EXPECT_EQ(sketch(x.elements, type), alone); });
      if (x.elements.size < 4) continue;  // fill() cuts the values short
      const SketchSums expected = defined(values, static_cast<uint64_t>(shape.back()));
      EXPECT_LT(distance(alone.sums, expected), 1e-6 * norm(expected));
    }
  }
}

// The pieces of a grid, each as if the rest were zero, add up to the whole: along every dimension,
// from every index.
TEST(Sketch, PiecesAtTheirPlacesAddUp) {
  for (FloatType type : kTypes) {
    Tensor x({5, 7, 150}, type);
    const auto values = numbers(x.count(), 11);
    x.fill(values);
    const SketchSums whole = sketch(x.elements, type).sums;
    for (size_t dim = 0; dim < 3; ++dim)
      for (int64_t cut : {1, 2, 4}) {
        SketchSums sum{};
        for (const bool second : {false, true}) {
          Elements piece = x.elements;
          Frame frame{x.elements.shape, {0, 0, 0}};
          const int64_t at = dim == 2 ? cut * 33 : cut;
          piece.shape[dim] = second ? x.elements.shape[dim] - at : at;
          frame.first[dim] = second ? at : 0;
          piece.data = static_cast<const char*>(x.elements.data) +
                       frame.first[dim] * x.elements.strides[dim];
          const SketchSums y = sketch(piece, type, &frame).sums;
          for (size_t i = 0; i < kSketchNumbers; ++i) sum[i] += y[i];
        }
        EXPECT_EQ(sum, whole) << dim << " " << cut;
      }
  }
}

TEST(Sketch, WhatIsNotFiniteIsCountedAndStandsAsZero) {
  at_every_level([] {
    for (FloatType type : kTypes) {
      Tensor x({3, 100}, type);
      auto values = numbers(x.count(), 2);
      auto zeroed = values;
      const double special[] = {kInfinity, -kInfinity, -kInfinity, std::nan("")};
      for (size_t i = 0; i < 4; ++i) {
        values[i * 70] = special[i];
        zeroed[i * 70] = 0;
      }
      x.fill(values);
      const Sketch y = sketch(x.elements, type);
      EXPECT_EQ(y.sums, defined(zeroed, 100));
      EXPECT_EQ(y.positive_infinite, 1u);
      EXPECT_EQ(y.negative_infinite, 2u);
      EXPECT_EQ(y.not_a_number, 1u);
      EXPECT_FALSE(y.finite());
    }
  });
}

// Tasks of rows, lanes of two bytes that straddle rows, rows longer than what is read together.
TEST(Sketch, InOnePassWithTheDigestIsWhatBothAre) {
  const std::vector<std::vector<int64_t>> shapes = {
      {700'000}, {1000, 333}, {9, 50'257}, {5000, 64}, {3, 300, 257}, {40, 9}, {2, 600'000}};
  at_every_level([&] {
    for (FloatType type : kTypes) {
      const char* name = type == FloatType::float16    ? "float16"
                         : type == FloatType::bfloat16 ? "bfloat16"
                         : type == FloatType::float32  ? "float32"
                                                       : "float64";
      for (const auto& shape : shapes)
        for (const bool mask : {false, true}) {
          Tensor x(shape, type);
          auto values = numbers(x.count(), 31);
          if (mask)
            for (double& v : values) v = v < 0 ? -65504 : 0;
          values.back() = mask ? 0 : kInfinity;
          x.fill(values);
          const NumberType number(name, x.elements.size);
          Sketch y;
          const Digest d = digest_and_sketch(x.elements, number, type, mask ? 3 : 1, y);
          EXPECT_EQ(y, sketch(x.elements, type));
          EXPECT_EQ(d, digest(x.elements, number));
          EXPECT_EQ(d.pattern.has_value(), mask);
        }
    }
  });
}

// Numbers with leading zeros in their type are no less exact. There are as many rows as are summed
// as float32 before they are summed as float64.
TEST(Sketch, OfSmallNumbersAndOfManyRows) {
  at_every_level([] {
    for (FloatType type : kTypes)
      for (int64_t columns : {10, 64, 100, 1100}) {
        Tensor x({1300, columns}, type);
        auto values = numbers(x.count(), 21);
        const double unit = type == FloatType::float16 ? 0x1p-18 : 0x1p-130;
        for (double& v : values) v *= unit;
        if (type != FloatType::float16) {
          x.fill(values);
        } else {
          // fill() knows no small halves: their bits are multiples of 2^-24.
          for (double& v : values) v = std::trunc(v * 0x1p18) * 0x1p-24;
          for (uint64_t i = 0; i < x.count(); ++i) {
            const auto bits =
                static_cast<uint16_t>(static_cast<uint16_t>(std::fabs(values[i]) * 0x1p24) |
                                      (std::signbit(values[i]) ? 0x8000 : 0));
            std::memcpy(x.memory.data() + i * 2, &bits, 2);
          }
        }
        ASSERT_EQ(sketch(x.elements, type).sums, defined(values, static_cast<uint64_t>(columns)))
            << columns;
      }
  });
}

// What docs/formats/record-format.md says of it.
TEST(Sketch, OfTwoBytesIsNearTheSumsInFloat64) {
  std::mt19937_64 random(4);
  for (const auto& shape :
       std::vector<std::vector<int64_t>>{{40'000, 64}, {4000, 1000}, {1, 500'000}}) {
    std::vector<double> values(static_cast<size_t>(shape[0] * shape[1]));
    for (double& v : values) {
      v = std::pow(std::normal_distribution<>()(random), 5);
      v = std::bit_cast<float>(std::bit_cast<uint32_t>(static_cast<float>(v)) & 0xffff0000u);
    }
    Tensor x(shape, FloatType::bfloat16);
    x.fill(values);
    const SketchSums exact = defined(values, static_cast<uint64_t>(shape[1]));
    EXPECT_LT(distance(sketch(x.elements, FloatType::bfloat16).sums, exact), 0x1p-22 * norm(exact));
    Tensor y(shape, FloatType::float32);
    y.fill(values);
    EXPECT_LT(distance(sketch(y.elements, FloatType::float32).sums, exact), 0x1p-48 * norm(exact));
  }
}

// A float32 does not hold the sums of such.
TEST(Sketch, OfNumbersAsLargeAsAFloat32Holds) {
  at_every_level([] {
    Tensor x({40, 300}, FloatType::bfloat16);
    const std::vector<double> values(x.count(), 0x1p127);
    x.fill(values);
    const Sketch y = sketch(x.elements, FloatType::bfloat16);
    EXPECT_EQ(y.sums, defined(values, 300));
    EXPECT_TRUE(y.finite());
  });
}

// Of |y(d)| / |d| over 300 contents of a kind.
struct Quality {
  double mean = 0, deviation = 0;
};

template <typename Make>
Quality quality(Make make) {
  Quality q;
  constexpr int kTries = 300;
  std::vector<double> ratios;
  std::mt19937_64 random(77);
  for (int i = 0; i < kTries; ++i) {
    Tensor x({96, 160}, FloatType::float64);
    const std::vector<double> values = make(random);
    x.fill(values);
    double square = 0;
    for (double v : values) square += v * v;
    ratios.push_back(norm(sketch(x.elements, FloatType::float64).sums) / std::sqrt(square));
    q.mean += ratios.back() / kTries;
  }
  for (double r : ratios) q.deviation += (r - q.mean) * (r - q.mean) / kTries;
  q.deviation = std::sqrt(q.deviation);
  return q;
}

// This is the test of the rotation of rows. Without it one wrong column, and rows that are all
// alike, would have a standard deviation of 0.58. The tensors differ in which column or row it is.
TEST(Sketch, EstimatesTheNormOfEveryKindOfDifference) {
  const auto normal = [](std::mt19937_64& random) { return std::normal_distribution<>()(random); };
  const auto filled = [&](auto value) {
    return [=](std::mt19937_64& random) {
      std::vector<double> v(96 * 160);
      const uint64_t pick = random();
      std::vector<double> a(96), b(160);
      for (double& x : a) x = normal(random);
      for (double& x : b) x = normal(random);
      for (uint64_t r = 0; r < 96; ++r)
        for (uint64_t j = 0; j < 160; ++j) v[r * 160 + j] = value(random, pick, r, j, a, b);
      return v;
    };
  };
  using Random = std::mt19937_64&;
  using Line = const std::vector<double>&;
  const Quality gaussian = quality(filled(
      [&](Random random, uint64_t, uint64_t, uint64_t, Line, Line) { return normal(random); }));
  const Quality column = quality(filled([](Random, uint64_t pick, uint64_t r, uint64_t j, Line a,
                                           Line) { return j == pick % 160 ? a[r] : 0.0; }));
  const Quality row = quality(filled([](Random, uint64_t pick, uint64_t r, uint64_t j, Line,
                                        Line b) { return r == pick % 96 ? b[j] : 0.0; }));
  const Quality equal_rows =
      quality(filled([](Random, uint64_t, uint64_t, uint64_t j, Line, Line b) { return b[j]; }));
  const Quality rank_one = quality(
      filled([](Random, uint64_t, uint64_t r, uint64_t j, Line a, Line b) { return a[r] * b[j]; }));
  for (const Quality& q : {gaussian, column, row}) {
    EXPECT_NEAR(q.mean, 1, 0.03);
    EXPECT_LT(q.deviation, 0.11);
  }
  for (const Quality& q : {equal_rows, rank_one}) {
    EXPECT_NEAR(q.mean, 1, 0.05);
    EXPECT_LT(q.deviation, 0.17);
  }
}

}  // namespace
}  // namespace opguard
