// A rank's piece of a tensor is the piece that the reference's sketches call by the same number.
#include "confirm/cut_tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "runtime/fingerprint/slices.h"

namespace opguard::test {
namespace {

using Shape = std::vector<int64_t>;

template <typename T>
Tensor tensor_of(const std::vector<T>& values, const Shape& shape, const char* dtype) {
  return {"", dtype_named(dtype), shape, reinterpret_cast<const unsigned char*>(values.data())};
}

Elements rows_of(const void* data, uint32_t size, const Shape& shape) {
  Elements e{data, size, shape, Shape(shape.size())};
  int64_t step = size;
  for (size_t d = shape.size(); d-- > 0; step *= shape[d]) e.strides[d] = step;
  return e;
}

// Every piece of every set that a reference is sketched in.
TEST(CutTensor, ThePieceThatIsSketched) {
  const Shape whole = {4, 6, 8};
  std::vector<float> values(4 * 6 * 8);
  std::mt19937 random(7);
  for (float& value : values) value = std::normal_distribution<float>()(random);
  const Tensor tensor = tensor_of(values, whole, "float32");
  uint64_t pieces = 0;
  for (const Shape& local : {Shape{2, 6, 8}, Shape{4, 6, 4}, Shape{4, 2, 8}, Shape{2, 6, 2}}) {
    const auto sets =
        sketch_sets(rows_of(values.data(), 4, whole), FloatType::float32, {{local}});
    for (const SketchSet& set : sets) {
      if (set.kind == SketchSetKind::whole) continue;
      const bool halves = set.kind == SketchSetKind::halves;
      const auto along = static_cast<uint32_t>(whole[set.dim] / local[set.dim] * 2);
      const auto count = static_cast<uint32_t>(set.sketches.size() / (halves ? 2 : 1));
      for (uint32_t i = 0; i < count; ++i) {
        // The next piece of the same cell, or the one before.
        const uint32_t j = !halves ? i : i % along + 1 < along ? i + 1 : i - 1;
        SketchSums expected = set.sketches[halves ? 2 * i : i].sums;
        if (halves)
          for (size_t k = 0; k < kSketchNumbers; ++k)
            expected[k] += set.sketches[2 * j + 1].sums[k];
        const auto bytes = cut_tensor(tensor, {set.kind, set.dim, local, {i, j}}, *tensor.dtype);
        ASSERT_TRUE(bytes);
        const SketchSums held = sketch(rows_of(bytes->data(), 4, local), FloatType::float32).sums;
        EXPECT_LT(distance(held, expected), 1e-9) << i << " of a set of kind " << int(set.kind);
        ++pieces;
      }
    }
  }
  EXPECT_GE(pieces, 30u);
}

TEST(CutTensor, AnotherRankHasThisPartOfTheSum) {
  const std::vector<float> values = {1, 2, 3, 4};
  const auto bytes =
      cut_tensor(tensor_of(values, {2, 2}, "float32"), {SketchSetKind::whole, 0, {2, 2}, {}, true},
                 *dtype_named("float32"));
  ASSERT_TRUE(bytes);
  EXPECT_EQ(*bytes, std::vector<unsigned char>(16, 0));
}

TEST(CutTensor, NoSuchPiece) {
  const std::vector<float> values(8);
  const Tensor tensor = tensor_of(values, {8}, "float32");
  EXPECT_FALSE(cut_tensor(tensor, {SketchSetKind::grid, 0, {4}, {2, 2}}, *tensor.dtype));
  EXPECT_FALSE(cut_tensor(tensor, {SketchSetKind::grid, 0, {3}, {0, 0}}, *tensor.dtype));
  EXPECT_FALSE(cut_tensor(tensor, {SketchSetKind::halves, 0, {4}, {0, 4}}, *tensor.dtype));
  EXPECT_FALSE(cut_tensor(tensor, {SketchSetKind::whole, 0, {9}}, *tensor.dtype));
}

// float -> double -> float is itself; float -> bfloat16 is the nearest, ties to even.
TEST(CutTensor, AsAnotherType) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {0.0f,     -0.0f, 1.5f, -3.14159f, 1e-40f,
                                     65504.0f, 1e30f, inf,  -inf,      1.00390625f};
  const Shape shape = {static_cast<int64_t>(values.size())};
  const TensorCut cut{SketchSetKind::whole, 0, shape};
  const Tensor tensor = tensor_of(values, shape, "float32");
  const auto wide = cut_tensor(tensor, cut, *dtype_named("float64"));
  ASSERT_TRUE(wide);
  for (size_t i = 0; i < values.size(); ++i) {
    double value = 0;
    std::memcpy(&value, wide->data() + 8 * i, 8);
    EXPECT_EQ(value, double{values[i]});
    EXPECT_EQ(std::signbit(value), std::signbit(values[i]));
  }
  const auto back =
      cut_tensor({"", dtype_named("float64"), shape, wide->data()}, cut, *dtype_named("float32"));
  ASSERT_TRUE(back);
  EXPECT_EQ(std::memcmp(back->data(), values.data(), back->size()), 0);
  const auto narrow = cut_tensor(tensor, cut, *dtype_named("bfloat16"));
  ASSERT_TRUE(narrow);
  for (size_t i = 0; i < values.size(); ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, &values[i], 4);
    const uint32_t nearest = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    uint16_t made = 0;
    std::memcpy(&made, narrow->data() + 2 * i, 2);
    EXPECT_EQ(made, nearest) << values[i];
  }
  EXPECT_FALSE(cut_tensor(tensor, cut, *dtype_named("int64")));
}

}  // namespace
}  // namespace opguard::test
