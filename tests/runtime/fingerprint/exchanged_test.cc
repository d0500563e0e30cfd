// Sketches of a tensor as another program has its dimensions.
#include <gtest/gtest.h>

#include <vector>

#include "record/sketch_code.h"
#include "runtime/fingerprint/slices.h"

namespace opguard {
namespace {

using Dims = std::vector<int64_t>;

struct Whole {
  Dims shape;
  std::vector<double> values;

  explicit Whole(Dims dims) : shape(std::move(dims)) {
    size_t count = 1;
    for (const int64_t n : shape) count *= static_cast<size_t>(n);
    for (size_t i = 0; i < count; ++i) values.push_back(static_cast<double>(i * i % 97) - 40);
  }
  Elements elements() const {
    Elements e{values.data(), 8, shape, Dims(shape.size())};
    int64_t step = 8;
    for (size_t d = shape.size(); d-- > 0; step *= shape[d]) e.strides[d] = step;
    return e;
  }
  // As a tensor of its own, dimension k of which is dimension order[k] of this one.
  Whole permuted(const std::vector<size_t>& order) const {
    Elements e = elements();
    Dims dims;
    for (const size_t d : order) dims.push_back(shape[d]);
    Whole other(dims);
    Dims index(order.size(), 0);
    for (double& value : other.values) {
      int64_t at = 0;
      for (size_t k = 0; k < order.size(); ++k) at += index[k] * e.strides[order[k]];
      value = values[static_cast<size_t>(at / 8)];
      for (size_t k = order.size(); k-- > 0 && ++index[k] == dims[k];) index[k] = 0;
    }
    return other;
  }
};

SketchSums sums_of(const Whole& whole) { return sketch(whole.elements(), FloatType::float64).sums; }

std::vector<SketchSet> exchanged(const Whole& whole, const Dims& wanted) {
  PiecesWanted pieces;
  pieces.exchanged.insert(wanted);
  std::vector<SketchSet> sets = sketch_sets(whole.elements(), FloatType::float64, pieces);
  sets.erase(sets.begin());
  return sets;
}

TEST(Exchanged, ChannelsLastAndFirst) {
  const Whole last({2, 4, 5, 3});
  const Whole first = last.permuted({0, 3, 1, 2});
  const std::vector<SketchSet> sets = exchanged(last, first.shape);
  ASSERT_EQ(sets.size(), 1u);
  EXPECT_EQ(sets[0].dim, 3 * 16 + kMovedTo + 1);
  EXPECT_EQ(sets[0].sketches[0].sums, sums_of(first));

  const std::vector<SketchSet> back = exchanged(first, last.shape);
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].dim, 1 * 16 + kMovedTo + 3);
  EXPECT_EQ(back[0].sketches[0].sums, sums_of(last));
}

// With as many rows as columns both an exchange and a move have that shape.
TEST(Exchanged, SquarePicturesAreBoth) {
  const Whole last({2, 4, 4, 3});
  const std::vector<SketchSet> sets = exchanged(last, {2, 3, 4, 4});
  ASSERT_EQ(sets.size(), 2u);
  EXPECT_EQ(sets[0].dim, 1 * 16 + 3);
  EXPECT_EQ(sets[0].sketches[0].sums, sums_of(last.permuted({0, 3, 2, 1})));
  EXPECT_EQ(sets[1].dim, 3 * 16 + kMovedTo + 1);
  EXPECT_EQ(sets[1].sketches[0].sums, sums_of(last.permuted({0, 3, 1, 2})));
}

TEST(Exchanged, NeighboursThatMoveAreExchangedOnce) {
  const std::vector<SketchSet> sets = exchanged(Whole({2, 5, 7}), {2, 7, 5});
  ASSERT_EQ(sets.size(), 1u);
  EXPECT_EQ(sets[0].dim, 1 * 16 + 2);
}

TEST(Exchanged, OtherShapesAreNone) {
  EXPECT_TRUE(exchanged(Whole({2, 5, 7}), {7, 2, 4}).empty());
  EXPECT_TRUE(exchanged(Whole({2, 5, 7}), {2, 5, 7}).empty());
}

}  // namespace
}  // namespace opguard
