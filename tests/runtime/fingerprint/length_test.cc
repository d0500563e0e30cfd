// Lengths: of every type and layout what a plain sum says, at every level and for any number of
// threads. Beside them og1's h as fingerprint() has it.
#include "runtime/fingerprint/length.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "levels.h"

namespace opguard {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Rows of floats with a gap behind each, whole or transposed.
struct Matrix {
  Matrix(int64_t rows, int64_t columns, int64_t gap, bool transposed = false)
      : memory(static_cast<size_t>(rows * (columns + gap)), 1e6f) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) {
        const float x = normal(random);
        memory[static_cast<size_t>(r * (columns + gap) + c)] = x;
        sum += static_cast<double>(x) * x;
      }
    elements = {memory.data(), 4, {rows, columns}, {4 * (columns + gap), 4}};
    if (transposed) elements = {memory.data(), 4, {columns, rows}, {4, 4 * (columns + gap)}};
  }
  std::vector<float> memory;
  Elements elements;
  double sum = 0;
};

TEST(Length, IsTheRootOfTheSumOfSquares) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{1, 1},
                                      {1, 300'000},
                                      {3, 7},
                                      {9, 40},
                                      {2000, 700},
                                      {70'000, 5},
                                      {3, 100'000}})
    for (const int64_t gap : {0, 3})
      for (const bool transposed : {false, true}) {
        const Matrix m(rows, columns, gap, transposed);
        const Measure alone = measure(m.elements, FloatType::float32);
        EXPECT_NEAR(*alone.length, std::sqrt(m.sum), 1e-9 * std::sqrt(m.sum));
        at_every_level([&] {
          for (const unsigned threads : {1u, 3u}) {
            const Measure found = measure(m.elements, FloatType::float32, threads);
            EXPECT_EQ(found.h, fingerprint(m.elements).h);
            EXPECT_EQ(*found.length, *alone.length) << rows << " " << columns;
          }
        });
      }
}

TEST(Length, OfEveryTypeTheSameAtEveryLevel) {
  std::vector<char> memory(8 * 1000);
  std::mt19937 random(3);
  for (char& byte : memory)
    byte = static_cast<char>(random() & 0x3f);  // nothing that is not finite
  for (const FloatType type :
       {FloatType::float16, FloatType::bfloat16, FloatType::float32, FloatType::float64}) {
    const uint32_t size = type == FloatType::float64 ? 8 : type == FloatType::float32 ? 4 : 2;
    const Elements e{memory.data(), size, {100, 7}, {7 * size, size}};
    const double first = *measure(e, type).length;
    EXPECT_GT(first, 0);
    at_every_level([&] { EXPECT_EQ(*measure(e, type).length, first); });
  }
}

double length_of_halves(std::vector<uint16_t> halves, FloatType type) {
  const Elements e{halves.data(), 2, {static_cast<int64_t>(halves.size())}, {2}};
  double found = 0;
  at_every_level([&] { found = *measure(e, type).length; });
  return found;
}

TEST(Length, Halves) {
  EXPECT_EQ(length_of_halves({0x4200, 0xc400}, FloatType::float16), 5);             // 3, -4
  EXPECT_EQ(length_of_halves({0x0001}, FloatType::float16), std::ldexp(1.0, -24));  // the smallest
  EXPECT_EQ(length_of_halves({0x7c00, 0x0000}, FloatType::float16), kInfinity);
  EXPECT_TRUE(std::isnan(length_of_halves({0x7e00, 0x7c00}, FloatType::float16)));
  EXPECT_EQ(length_of_halves({0x4040, 0xc080}, FloatType::bfloat16), 5);
  EXPECT_EQ(length_of_halves({0xff80}, FloatType::bfloat16), kInfinity);
}

double length_of(std::vector<double> numbers) {
  const Elements e{numbers.data(), 8, {static_cast<int64_t>(numbers.size())}, {8}};
  return *measure(e, FloatType::float64).length;
}

TEST(Length, BeyondTheRangeOfSquares) {
  EXPECT_DOUBLE_EQ(length_of({3e200, 4e200}), 5e200);
  EXPECT_EQ(length_of({1e200, kInfinity}), kInfinity);
  EXPECT_TRUE(std::isnan(length_of({1e200, std::nan("")})));
  EXPECT_TRUE(std::isnan(length_of({kInfinity, std::nan("")})));
}

TEST(Length, OfNothingAndOfIntegers) {
  const int64_t number = 5;
  const Elements whole{&number, 8, {1}, {8}}, empty{nullptr, 4, {0, 3}, {12, 4}};
  EXPECT_FALSE(measure(whole, FloatType::none).length);
  EXPECT_EQ(measure(whole, FloatType::none).h, fingerprint(whole).h);
  EXPECT_EQ(*measure(empty, FloatType::float32).length, 0);
}

}  // namespace
}  // namespace opguard
