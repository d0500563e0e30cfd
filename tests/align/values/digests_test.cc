#include "align/values/digests.h"

#include <gtest/gtest.h>

#include "align/builder.h"

namespace opguard {
namespace {

Slot with(uint64_t digest) {
  Slot slot;
  slot.has_digest = true;
  slot.digest = digest;
  return slot;
}

TEST(Digests, SameElements) {
  EXPECT_TRUE(same_elements(with(5), with(5)));
  EXPECT_FALSE(same_elements(with(5), with(6)));
  EXPECT_TRUE(has_elements(with(5)));
}

TEST(Digests, ZerosHaveNone) {
  EXPECT_FALSE(has_elements(with(0)));
  EXPECT_TRUE(same_elements(with(0), with(0)));
  EXPECT_TRUE(is_repeat_of(with(0), with(0), 7));
}

TEST(Digests, PartsAddUpModulo64Bits) {
  const std::vector<Slot> parts = {with(~uint64_t{0}), with(3), with(0)};
  EXPECT_TRUE(is_sum_of(with(2), parts));
  EXPECT_FALSE(is_sum_of(with(3), parts));
  EXPECT_TRUE(is_sum_of(with(0), {}));
}

TEST(Digests, RepetitionMultiplies) {
  EXPECT_TRUE(is_repeat_of(with(36), with(3), 12));
  EXPECT_FALSE(is_repeat_of(with(36), with(3), 11));
}

TEST(Digests, WhatIsNotKnownIsNothing) {
  const Slot unknown;
  const std::vector<Slot> parts = {with(1), unknown};
  EXPECT_FALSE(has_elements(unknown));
  EXPECT_FALSE(same_elements(unknown, unknown));
  EXPECT_FALSE(same_elements(unknown, with(0)));
  EXPECT_FALSE(is_sum_of(with(1), parts));
  EXPECT_FALSE(is_sum_of(unknown, {}));
  EXPECT_FALSE(is_repeat_of(unknown, with(0), 1));
  EXPECT_FALSE(is_repeat_of(with(0), unknown, 1));
}

TEST(Digests, BuiltRunsKnowThoseTheyAreGiven) {
  test::LogBuilder run;
  test::S given = test::out(3);
  given.digest = 0;
  run.add({"a", {test::in(1), given}});
  EXPECT_FALSE(Slot(run.log().slots[0]).has_digest);
  EXPECT_TRUE(Slot(run.log().slots[1]).has_digest);
}

}  // namespace
}  // namespace opguard
