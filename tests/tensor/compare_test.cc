#include "tensor/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "tensor/made.h"

namespace opguard {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

const Explanation* find(const Difference& d, const std::string& kind) {
  for (const Explanation& e : d.explanations)
    if (e.kind == kind) return &e;
  return nullptr;
}

std::string kinds(const Difference& d) {
  std::string all;
  for (const Explanation& e : d.explanations) all += (all.empty() ? "" : " ") + e.kind;
  return all;
}

Made floats(std::vector<int64_t> shape, const std::vector<float>& values) {
  return Made("float32", std::move(shape), values);
}

Made random(std::vector<int64_t> shape, uint64_t seed = 1) {
  size_t n = 1;
  for (int64_t d : shape) n *= static_cast<size_t>(d);
  return floats(shape, random_floats(n, seed));
}

uint32_t bits(float f) { return std::bit_cast<uint32_t>(f); }
uint16_t bfloat16(float f) {
  return static_cast<uint16_t>((bits(f) + 0x7fff + (bits(f) >> 16 & 1)) >> 16);
}

TEST(Compare, Equal) {
  Made a = random({3, 4});
  const Difference d = compare_tensors(a.tensor, a.tensor);
  EXPECT_TRUE(d.equal);
  EXPECT_EQ(kinds(d), "equal");
  Made none = floats({0, 3}, {});
  EXPECT_TRUE(compare_tensors(none.tensor, none.tensor).equal);
  Made nan = floats({1}, {kNan});
  EXPECT_TRUE(compare_tensors(nan.tensor, nan.tensor).equal);
}

TEST(Compare, CountsFirstIndexAndErrors) {
  Made a = random({4, 5, 6}), b = a;
  b.at<float>(2 * 30 + 3 * 6 + 4) += 1;
  b.at<float>(3 * 30) = std::nextafter(b.at<float>(3 * 30), kInf);
  a.at<float>(2 * 30 + 3 * 6 + 4) = 1;
  b.at<float>(2 * 30 + 3 * 6 + 4) = 3;
  const Difference d = compare_tensors(a.tensor, b.tensor);
  EXPECT_FALSE(d.equal);
  EXPECT_EQ(d.elements, 120u);
  EXPECT_EQ(d.differing, 2u);
  EXPECT_EQ(d.first, (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(d.last, (std::vector<int64_t>{3, 0, 0}));
  EXPECT_EQ(d.first_a, "1");
  EXPECT_EQ(d.first_b, "3");
  EXPECT_EQ(d.slices, (std::vector<int64_t>{2, 2, 2}));
  EXPECT_EQ(d.max_ulp, uint64_t{bits(3.0f) - bits(1.0f)});
  EXPECT_EQ(d.max_absolute, 2.0);
  EXPECT_DOUBLE_EQ(*d.max_relative, 2.0 / 3);
}

// One step of the last place in every floating dtype, across zero too.
TEST(Compare, UlpIsOfTheDtype) {
  auto ulp = [](const char* dtype, auto x, auto y) {
    Made a(dtype, {1}, std::vector{x}), b(dtype, {1}, std::vector{y});
    return compare_tensors(a.tensor, b.tensor).max_ulp;
  };
  EXPECT_EQ(ulp("float32", bits(1), bits(1) + 1), 1u);
  EXPECT_EQ(ulp("float32", 1u, 0x80000001u), 2u);
  EXPECT_EQ(ulp("float64", uint64_t{1}, uint64_t{3}), 2u);
  EXPECT_EQ(ulp("float64", std::bit_cast<uint64_t>(1e308), std::bit_cast<uint64_t>(-1e308)),
            2 * std::bit_cast<uint64_t>(1e308));
  EXPECT_EQ(ulp("float16", uint16_t{0x3c00}, uint16_t{0x3c02}), 2u);
  EXPECT_EQ(ulp("bfloat16", uint16_t{0x3f80}, uint16_t{0x3f81}), 1u);
  for (const char* dtype :
       {"float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"})
    EXPECT_EQ(ulp(dtype, uint8_t{0x21}, uint8_t{0x24}), 3u) << dtype;
  EXPECT_FALSE(ulp("float32", bits(kNan), bits(1)));
  EXPECT_FALSE(ulp("int32", 1, 2));
}

TEST(Compare, IntegersAreExact) {
  auto distance = [](const char* dtype, auto x, auto y) {
    Made a(dtype, {1}, std::vector{x}), b(dtype, {1}, std::vector{y});
    return compare_tensors(a.tensor, b.tensor).max_absolute;
  };
  const int64_t big = int64_t{1} << 60;
  EXPECT_EQ(distance("int64", big, big + 1), 1.0);
  EXPECT_EQ(distance("int64", std::numeric_limits<int64_t>::min(), int64_t{0}), 0x1p63);
  EXPECT_EQ(distance("int8", int8_t{-1}, int8_t{1}), 2.0);
  EXPECT_EQ(distance("uint8", uint8_t{255}, uint8_t{1}), 254.0);
  EXPECT_EQ(distance("uint64", ~uint64_t{0}, ~uint64_t{0} - 3), 3.0);
  EXPECT_EQ(distance("bool", uint8_t{0}, uint8_t{1}), 1.0);
}

TEST(Compare, ComplexElementsAreToldOnce) {
  Made a("complex64", {2}, std::vector<float>{1, 2, 3, 4}), b = a;
  b.at<float>(2) = 5;
  b.at<float>(3) = 6;
  const Difference d = compare_tensors(a.tensor, b.tensor);
  EXPECT_EQ(d.elements, 2u);
  EXPECT_EQ(d.differing, 1u);
  EXPECT_EQ(d.first, (std::vector<int64_t>{1}));
  EXPECT_EQ(d.first_a, "(3, 4)");
  EXPECT_EQ(d.max_absolute, 2.0);
}

TEST(Compare, OpaqueBitsAreComparedAsBits) {
  Made a("quint4x2", {3}, std::vector<uint8_t>{1, 2, 3}), b = a;
  b.at<uint8_t>(1) = 7;
  const Difference d = compare_tensors(a.tensor, b.tensor);
  EXPECT_EQ(d.differing, 1u);
  EXPECT_FALSE(d.max_absolute);
  EXPECT_EQ(d.first_b, "0x7");
}

TEST(Explain, SignedZero) {
  Made a = floats({3}, {0, 1, 0}), b = floats({3}, {-0.0f, 1, 0});
  const Difference d = compare_tensors(a.tensor, b.tensor);
  EXPECT_EQ(d.signed_zeros, 1u);
  EXPECT_EQ(d.max_ulp, 0u);
  EXPECT_TRUE(find(d, "signed_zero"));
  EXPECT_FALSE(find(d, "sign_flip"));
  b.at<float>(1) = 2;
  EXPECT_FALSE(find(compare_tensors(a.tensor, b.tensor), "signed_zero"));
}

TEST(Explain, NanPayload) {
  Made a("float32", {2}, std::vector<uint32_t>{0x7fc00000, bits(1)});
  Made b("float32", {2}, std::vector<uint32_t>{0x7fc00001, bits(1)});
  const Difference d = compare_tensors(a.tensor, b.tensor);
  EXPECT_TRUE(find(d, "nan_payload"));
  EXPECT_EQ(d.first_b, "nan (0x7fc00001)");
}

TEST(Explain, NanInOne) {
  Made a = random({10}), b = a;
  b.at<float>(3) = kNan;
  b.at<float>(7) = kNan;
  Difference d = compare_tensors(a.tensor, b.tensor);
  ASSERT_TRUE(find(d, "nan"));
  EXPECT_EQ(find(d, "nan")->side, "b");
  EXPECT_EQ(d.nan_b, 2u);
  EXPECT_EQ(d.nan_a, 0u);
  EXPECT_EQ(find(compare_tensors(b.tensor, a.tensor), "nan")->side, "a");
  b.at<float>(5) += 1;
  EXPECT_FALSE(find(compare_tensors(a.tensor, b.tensor), "nan"));
}

TEST(Explain, SignFlip) {
  Made a = random({10}), b = a;
  b.at<float>(2) *= -1;
  b.at<float>(9) *= -1;
  Difference d = compare_tensors(a.tensor, b.tensor);
  ASSERT_TRUE(find(d, "sign_flip"));
  EXPECT_EQ(find(d, "sign_flip")->text, "where they differ, b is -a");
  for (int i = 0; i < 10; ++i) b.at<float>(i) = -a.at<float>(i);
  d = compare_tensors(a.tensor, b.tensor);
  EXPECT_EQ(find(d, "sign_flip")->text, "b is -a");
  EXPECT_FALSE(find(d, "scaled"));
  Made i("int32", {3}, std::vector<int32_t>{1, -2, 0}), j("int32", {3}, std::vector{-1, 2, 0});
  EXPECT_TRUE(find(compare_tensors(i.tensor, j.tensor), "sign_flip"));
}

TEST(Explain, CastThroughANarrowerType) {
  Made a = random({100}), b = a;
  for (int i = 0; i < 100; ++i)
    b.at<float>(i) = std::bit_cast<float>(uint32_t{bfloat16(a.at<float>(i))} << 16);
  Difference d = compare_tensors(a.tensor, b.tensor);
  ASSERT_TRUE(find(d, "cast")) << kinds(d);
  EXPECT_EQ(find(d, "cast")->through, "bfloat16");
  EXPECT_EQ(find(d, "cast")->side, "b");
  d = compare_tensors(b.tensor, a.tensor);
  EXPECT_EQ(find(d, "cast")->side, "a");
  for (int i = 0; i < 100; ++i)
    b.at<float>(i) = std::bit_cast<float>(bits(a.at<float>(i)) & 0xffffe000);
  EXPECT_EQ(find(compare_tensors(a.tensor, b.tensor), "cast")->through, "tf32 (truncated)");
  b.at<float>(50) = std::nextafter(b.at<float>(50), kInf);
  EXPECT_FALSE(find(compare_tensors(a.tensor, b.tensor), "cast"));
  for (int i = 0; i < 100; ++i)
    b.at<float>(i) = static_cast<float>(
        rounded(a.at<float>(i), *dtype_named("float16")->format, Rounding::nearest_even));
  EXPECT_EQ(find(compare_tensors(a.tensor, b.tensor), "cast")->through, "float16");
  for (int i = 0; i < 100; ++i)
    b.at<float>(i) = static_cast<float>(
        rounded(a.at<float>(i), *dtype_named("float8_e4m3fn")->format, Rounding::nearest_even));
  EXPECT_EQ(find(compare_tensors(a.tensor, b.tensor), "cast")->through, "float8_e4m3fn");
}

TEST(Explain, CastOfDoubles) {
  std::vector<double> values(50);
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<double>(i));
  Made a("float64", {50}, values), b = a;
  for (int i = 0; i < 50; ++i) b.at<double>(i) = static_cast<float>(b.at<double>(i));
  EXPECT_EQ(find(compare_tensors(a.tensor, b.tensor), "cast")->through, "float32");
}

TEST(Explain, AnotherDtype) {
  const std::vector<float> values = random_floats(20);
  std::vector<uint16_t> narrow;
  for (float x : values) narrow.push_back(bfloat16(x));
  Made a = floats({20}, values), b("bfloat16", {20}, narrow);
  Difference d = compare_tensors(a.tensor, b.tensor);
  EXPECT_FALSE(d.equal);
  ASSERT_TRUE(find(d, "cast"));
  EXPECT_EQ(find(d, "cast")->through, "bfloat16");
  for (int i = 0; i < 20; ++i)
    a.at<float>(i) = std::bit_cast<float>(uint32_t{narrow[static_cast<size_t>(i)]} << 16);
  d = compare_tensors(a.tensor, b.tensor);
  EXPECT_EQ(d.differing, 0u);
  EXPECT_FALSE(d.equal);
  EXPECT_EQ(kinds(d), "dtype");
}

TEST(Explain, Scaled) {
  for (const float factor : {2.0f, 0.125f, 1.0f / 3, 1.1f, -3.0f}) {
    Made a = random({200}), b = a;
    a.at<float>(5) = b.at<float>(5) = 0;
    for (int i = 0; i < 200; ++i) b.at<float>(i) *= factor;
    Difference d = compare_tensors(a.tensor, b.tensor);
    ASSERT_TRUE(find(d, "scaled")) << factor;
    EXPECT_NEAR(find(d, "scaled")->factor, factor, std::abs(factor) * 1e-7);
    b.at<float>(100) *= 1.01f;
    EXPECT_FALSE(find(compare_tensors(a.tensor, b.tensor), "scaled")) << factor;
  }
  Made a = random({200}), b = a;
  for (int i = 0; i < 200; ++i) b.at<float>(i) = b.at<float>(i) / 8;
  EXPECT_EQ(find(compare_tensors(a.tensor, b.tensor), "scaled")->factor, 0.125);
  // One number is always a multiple of another.
  Made c = floats({2}, {3, 3}), e = floats({2}, {5, 5});
  EXPECT_FALSE(find(compare_tensors(c.tensor, e.tensor), "scaled"));
}

TEST(Explain, Filled) {
  Made a = random({8}), b = a;
  for (int i : {1, 4, 6}) b.at<float>(i) = 0;
  const Difference d = compare_tensors(a.tensor, b.tensor);
  ASSERT_TRUE(find(d, "filled"));
  EXPECT_EQ(find(d, "filled")->side, "b");
  EXPECT_EQ(find(d, "filled")->value, "0");
  b.at<float>(4) = 1;
  EXPECT_FALSE(find(compare_tensors(a.tensor, b.tensor), "filled"));
}

Made reordered(Made& a, const std::vector<int64_t>& from, size_t dim) {
  Made b = a;
  const std::vector<int64_t>& shape = a.tensor.shape;
  size_t inner = 1, outer = 1;
  for (size_t d = dim + 1; d < shape.size(); ++d) inner *= static_cast<size_t>(shape[d]);
  for (size_t d = 0; d < dim; ++d) outer *= static_cast<size_t>(shape[d]);
  const size_t n = from.size();
  for (size_t o = 0; o < outer; ++o)
    for (size_t i = 0; i < n; ++i)
      for (size_t k = 0; k < inner; ++k)
        if (from[i] >= 0)
          b.at<float>((o * n + i) * inner + k) =
              a.at<float>((o * n + static_cast<size_t>(from[i])) * inner + k);
  return b;
}

TEST(Explain, PermutationOfRowsAlongEveryDim) {
  for (size_t dim = 0; dim < 3; ++dim) {
    Made a = random({6, 7, 8});
    std::vector<int64_t> from(static_cast<size_t>(a.tensor.shape[dim]));
    std::iota(from.begin(), from.end(), 0);
    std::swap(from[1], from[4]);
    std::swap(from[1], from[2]);
    Made b = reordered(a, from, dim);
    const Difference d = compare_tensors(a.tensor, b.tensor);
    const Explanation* e = find(d, "permutation");
    ASSERT_TRUE(e) << dim << kinds(d);
    EXPECT_EQ(e->dim, static_cast<int>(dim));
    EXPECT_EQ(e->moved, (std::vector<std::pair<int64_t, int64_t>>{{2, 1}, {4, 2}, {1, 4}}));
    EXPECT_FALSE(find(d, "element_permutation"));
    b.at<float>(0) += 1;
    EXPECT_FALSE(find(compare_tensors(a.tensor, b.tensor), "permutation"));
  }
}

TEST(Explain, RolledAndFlipped) {
  for (size_t dim = 0; dim < 3; ++dim) {
    Made a = random({6, 7, 8});
    const int64_t n = a.tensor.shape[dim];
    for (int64_t by : {1, -2}) {
      std::vector<int64_t> from;
      for (int64_t i = 0; i < n; ++i) from.push_back((i - by + n) % n);
      Made b = reordered(a, from, dim);
      const Difference d = compare_tensors(a.tensor, b.tensor);
      ASSERT_TRUE(find(d, "roll")) << kinds(d);
      EXPECT_EQ(find(d, "roll")->dim, static_cast<int>(dim));
      EXPECT_EQ(find(d, "roll")->by, by);
    }
    std::vector<int64_t> from;
    for (int64_t i = 0; i < n; ++i) from.push_back(n - 1 - i);
    Made b = reordered(a, from, dim);
    const Difference d = compare_tensors(a.tensor, b.tensor);
    ASSERT_TRUE(find(d, "flip")) << kinds(d);
    EXPECT_EQ(find(d, "flip")->dim, static_cast<int>(dim));
  }
}

TEST(Explain, ShiftedWithNewRows) {
  for (int64_t by : {1, -2}) {
    Made a = random({9, 3});
    std::vector<int64_t> from;
    for (int64_t i = 0; i < 9; ++i) from.push_back(i - by < 0 || i - by >= 9 ? -1 : i - by);
    Made b = reordered(a, from, 0);
    for (int64_t i = 0; i < 9; ++i)
      for (int64_t k = 0; k < 3 && from[static_cast<size_t>(i)] < 0; ++k)
        b.at<float>(static_cast<size_t>(i * 3 + k)) = 77;
    const Difference d = compare_tensors(a.tensor, b.tensor);
    ASSERT_TRUE(find(d, "shift")) << kinds(d);
    EXPECT_EQ(find(d, "shift")->by, by);
  }
  // Rows that are all alike are shifted by anything.
  Made a = floats({6}, {1, 1, 1, 1, 1, 1}), b = floats({6}, {2, 1, 1, 1, 1, 1});
  EXPECT_FALSE(find(compare_tensors(a.tensor, b.tensor), "shift"));
}

TEST(Explain, Transposed) {
  Made a = random({4, 5}), b = floats({5, 4}, std::vector<float>(20));
  for (size_t i = 0; i < 4; ++i)
    for (size_t k = 0; k < 5; ++k) b.at<float>(k * 4 + i) = a.at<float>(i * 5 + k);
  Difference d = compare_tensors(a.tensor, b.tensor);
  EXPECT_FALSE(d.elementwise);
  ASSERT_TRUE(find(d, "transposed")) << kinds(d);
  b.tensor.shape = {4, 5};  // the wrong layout read as if it were the right one
  d = compare_tensors(a.tensor, b.tensor);
  ASSERT_TRUE(find(d, "transposed")) << kinds(d);
  EXPECT_NE(find(d, "transposed")->text.find("read in the shape [4, 5]"), std::string::npos);
}

TEST(Explain, ReshapedAndElementsPermuted) {
  Made a = random({4, 6}), b = a;
  b.tensor.shape = {8, 3};
  EXPECT_EQ(kinds(compare_tensors(a.tensor, b.tensor)), "reshaped");
  b.tensor.shape = {4, 6};
  std::swap(b.at<float>(0), b.at<float>(23));
  std::swap(b.at<float>(5), b.at<float>(12));
  EXPECT_TRUE(find(compare_tensors(a.tensor, b.tensor), "element_permutation"));
  b.at<float>(7) = b.at<float>(8);
  EXPECT_FALSE(find(compare_tensors(a.tensor, b.tensor), "element_permutation"));
  Made c = random({5});
  EXPECT_TRUE(compare_tensors(a.tensor, c.tensor).explanations.empty());
}

TEST(Explain, BlockOfStaleRows) {
  Made a = random({10, 4, 3}), other = random({10, 4, 3}, 2), b = a;
  for (size_t i = 4; i < 6; ++i)
    for (size_t k = 0; k < 12; ++k) b.at<float>(i * 12 + k) = other.at<float>(i * 12 + k);
  Difference d = compare_tensors(a.tensor, b.tensor);
  ASSERT_TRUE(find(d, "block")) << kinds(d);
  EXPECT_EQ(find(d, "block")->ranges,
            (std::vector<std::pair<int64_t, int64_t>>{{4, 5}, {0, 3}, {0, 2}}));
  EXPECT_EQ(find(d, "block")->text, "they differ only in indices 4 to 5 of dim 0");
  EXPECT_EQ(d.slices, (std::vector<int64_t>{2, 4, 3}));
}

TEST(Explain, RunInMemoryThatIsNoBox) {
  Made a = random({10, 10}), b = a;
  for (size_t i = 25; i < 48; ++i) b.at<float>(i) += 1;
  b.at<float>(20) = a.at<float>(20);
  Difference d = compare_tensors(a.tensor, b.tensor);
  // Rows 2 to 4, of which 23 of 30 differ, are the better answer.
  ASSERT_TRUE(find(d, "block")) << kinds(d);
  Made c = a;
  for (size_t i = 8; i < 12; ++i) c.at<float>(i) += 1;
  d = compare_tensors(a.tensor, c.tensor);
  ASSERT_TRUE(find(d, "run")) << kinds(d);
  EXPECT_EQ(find(d, "run")->ranges, (std::vector<std::pair<int64_t, int64_t>>{{8, 11}}));
  Made e = a;
  e.at<float>(0) += 1;
  e.at<float>(99) += 1;
  d = compare_tensors(a.tensor, e.tensor);
  EXPECT_FALSE(find(d, "block") || find(d, "run"));
}

TEST(Explain, Rounding) {
  Made a = random({50}), b = a;
  for (int i = 0; i < 50; i += 7) b.at<uint32_t>(i) += 3;
  Difference d = compare_tensors(a.tensor, b.tensor);
  ASSERT_TRUE(find(d, "rounding"));
  EXPECT_EQ(d.explanations.back().kind, "rounding");
  b.at<uint32_t>(1) += 5;
  EXPECT_FALSE(find(compare_tensors(a.tensor, b.tensor), "rounding"));
}

// Nothing is said of two tensors that have nothing in common.
TEST(Explain, UnrelatedTensors) {
  Made a = random({20, 20}, 1), b = random({20, 20}, 2);
  EXPECT_EQ(kinds(compare_tensors(a.tensor, b.tensor)), "");
}

// Every explanation is of what it says, whatever the dtype: none may fail or read beyond.
TEST(Explain, EveryDtype) {
  for (const char* dtype :
       {"float64",     "float32",         "float16",         "bfloat16",       "float8_e4m3fn",
        "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "complex128",
        "complex64",   "complex32",       "int64",           "int32",          "int16",
        "int8",        "uint8",           "uint16",          "uint32",         "uint64",
        "bool",        "qint8",           "quint4x2",        "bits16"}) {
    const size_t size = dtype_named(dtype)->size_bytes;
    std::mt19937 engine(3);
    std::vector<uint8_t> bytes(6 * 8 * size);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(engine() & 0x3f);
    if (std::string(dtype) == "bool")
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = engine() & 1;
    Made a(dtype, {6, 8}, bytes), b = a;
    std::memmove(b.bytes.data() + 8 * size, a.bytes.data(), 5 * 8 * size);
    std::memcpy(b.bytes.data(), a.bytes.data() + 5 * 8 * size, 8 * size);
    const Difference d = compare_tensors(a.tensor, b.tensor);
    ASSERT_TRUE(find(d, "roll")) << dtype << ": " << kinds(d);
    EXPECT_EQ(find(d, "roll")->by, 1) << dtype;
    EXPECT_FALSE(d.first_a.empty());
  }
}

}  // namespace
}  // namespace opguard
