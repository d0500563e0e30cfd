// Where uneven pieces begin: what ranks hold has to add up, in the order of a mesh.
#include "runtime/fingerprint/uneven_cuts.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace opguard {
namespace {

using Starts = std::vector<int64_t>;

// Of the first dimension, of pieces of a tensor of two.
Starts starts_of(UnevenCuts& cuts, int64_t whole, int64_t local, int64_t world) {
  const std::vector<UnevenPieces> found = cuts.pieces({whole, 8}, {local, 8}, world, {});
  if (found.empty()) return {};
  EXPECT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].starts.at(1), Starts{0});
  return found[0].starts.at(0);
}

TEST(UnevenCuts, OfOneGroupFollowEachOther) {
  UnevenCuts cuts;
  cuts.add_parts({26, 26, 26, 25});
  EXPECT_EQ(starts_of(cuts, 103, 26, 4), (Starts{0, 26, 52}));
  EXPECT_EQ(starts_of(cuts, 103, 25, 4), (Starts{78}));
  EXPECT_TRUE(starts_of(cuts, 103, 24, 4).empty());
  EXPECT_TRUE(starts_of(cuts, 104, 26, 4).empty());  // that is even
  EXPECT_TRUE(starts_of(cuts, 102, 26, 4).empty());  // they do not add up to it
}

TEST(UnevenCuts, ARankMayHaveNothing) {
  UnevenCuts cuts;
  cuts.add_parts({2, 2, 1, 0});
  // Of a mesh of 2 x 2 the order may be 2, 1, 2, 0 as well.
  EXPECT_EQ(starts_of(cuts, 5, 2, 4), (Starts{0, 2, 3}));
  EXPECT_EQ(starts_of(cuts, 5, 1, 4), (Starts{2, 4}));
  EXPECT_TRUE(starts_of(cuts, 5, 0, 4).empty());
}

TEST(UnevenCuts, OfAMeshAnyDimensionMayCut) {
  UnevenCuts cuts;
  cuts.add_parts({52, 51, 52, 51});
  EXPECT_EQ(starts_of(cuts, 103, 51, 4), (Starts{52}));
  UnevenCuts outer;
  outer.add_parts({52, 52, 51, 51});
  EXPECT_EQ(starts_of(outer, 103, 51, 4), (Starts{52}));
  // Both cut the same dimension, the inner one first: FSDP2 beside tensor parallelism.
  UnevenCuts both;
  both.add_parts({26, 26, 26, 25});
  both.add_parts({30, 28, 25, 20});
  EXPECT_EQ(starts_of(both, 103, 25, 4), (Starts{30, 58, 78}));
  EXPECT_EQ(starts_of(both, 103, 28, 4), (Starts{30, 55}));
}

// By its shape 20 of 60 would be one of three equal parts, and two ranks hold no three.
TEST(UnevenCuts, APieceThatDividesMayBeUneven) {
  UnevenCuts cuts;
  cuts.add_parts({40, 20});
  EXPECT_EQ(starts_of(cuts, 60, 20, 2), (Starts{40}));
  UnevenCuts three;
  three.add_parts({10, 30, 50});
  EXPECT_EQ(starts_of(three, 90, 30, 3), (Starts{0, 10, 30, 60}));
}

TEST(UnevenCuts, WhatIsPaddedIsCutInSteps) {
  UnevenCuts cuts;
  cuts.add_padded(103, 26);
  cuts.add_padded(103, 128);
  EXPECT_EQ(starts_of(cuts, 103, 26, 4), (Starts{0, 26, 52, 78}));
  EXPECT_EQ(starts_of(cuts, 103, 128, 4), (Starts{0}));
  EXPECT_TRUE(starts_of(cuts, 102, 26, 4).empty());
}

// [34, 8] of two sequences of 17, which ranks cut into 9 and 8.
TEST(UnevenCuts, SequencesThatAreFoldedIntoRows) {
  UnevenCuts cuts;
  cuts.add_parts({9, 8});
  const std::vector<UnevenPieces> found = cuts.pieces({34, 8}, {16, 8}, 2, {2});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0], (UnevenPieces{{16, 8}, 2, {{0}, {9}, {0}}}));
}

}  // namespace
}  // namespace opguard
