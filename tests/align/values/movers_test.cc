#include "align/values/movers.h"

#include <gtest/gtest.h>

#include "align/builder.h"

namespace opguard::test {
namespace {

S with(S slot, uint64_t digest, std::vector<int64_t> shape = {4}, uint32_t storage = 0,
       uint64_t at = 0) {
  slot.digest = digest, slot.shape = std::move(shape), slot.storage = storage, slot.at = at;
  return slot;
}

bool moves(std::vector<S> slots) {
  LogBuilder log;
  log.add({.boundary = "o", .slots = std::move(slots)});
  return rearranges(log.log(), log.log().events[0]);
}

TEST(Movers, TheSameElementsElsewhere) {
  EXPECT_TRUE(moves({with(in(1), 7), with(out(2), 7)})) << "a transpose";
  EXPECT_TRUE(moves({with(in(1), 7), with(in(2), 8), with(out(3), 15)})) << "a concatenation";
  EXPECT_FALSE(moves({with(in(1), 7), with(out(2), 9)}));
  S cast = with(out(2), 7);
  cast.dtype = "bfloat16";
  EXPECT_FALSE(moves({with(in(1), 7), cast})) << "a cast does more";
}

TEST(Movers, ARepetition) {
  EXPECT_TRUE(moves({with(in(1), 7, {2}), with(out(2), 21, {3, 2})}));
  EXPECT_FALSE(moves({with(in(1), 7, {2}), with(out(2), 21, {2})})) << "three times as large";
}

TEST(Movers, APartOfAnInput) {
  const S whole = with(in(1), 7, {8}, 3), part = with(out(2), 2, {4}, 3, 8);
  EXPECT_TRUE(moves({whole, part})) << "a slice";
  S written_whole = with(written(4), 9, {8}, 3);
  EXPECT_FALSE(moves({whole, written_whole, part})) << "changed in place, and handed out";
  EXPECT_FALSE(moves({whole, with(out(2), 2, {4}, 4, 8)})) << "in memory of its own";
}

TEST(Movers, ASplit) {
  EXPECT_TRUE(moves({with(in(1), 7), with(out(2), 3, {2}), with(out(3), 4, {2})}));
  EXPECT_FALSE(moves({with(in(1), 7), with(out(2), 3, {2}), with(out(3), 5, {2})}));
}

TEST(Movers, ACopyInPlace) {
  EXPECT_TRUE(moves({with(in(1, "self"), 7), with(in(2), 8), with(written(2), 8)}));
  EXPECT_FALSE(moves({with(in(1, "self"), 7), with(in(2), 8), with(written(3), 16)}));
}

TEST(Movers, WhatIsNotKnownIsNoMove) {
  EXPECT_FALSE(moves({in(1), out(1)}));
  EXPECT_FALSE(moves({with(in(1), 0), with(out(2), 0)})) << "zeros tell nothing";
  EXPECT_FALSE(moves({with(in(1), 7)}));
}

}  // namespace
}  // namespace opguard::test
