#include "confirm/reads_otherwise.h"

#include <gtest/gtest.h>

#include "align/builder.h"

namespace opguard::test {
namespace {

bool otherwise(const std::vector<S>& a, const std::vector<S>& b) {
  LogBuilder logs[2];
  logs[0].add({"m.f:1", a});
  logs[1].add({"m.f:1", b});
  const ProcessLog &x = logs[0].log(), &y = logs[1].log();
  return reads_otherwise(x, x.events[0], y, y.events[0]);
}

TEST(ReadsOtherwise, AnInputOfBothHoldsOtherBytes) {
  EXPECT_TRUE(otherwise({in(1), in(2, "arg1"), out(9)}, {in(1), in(3, "arg1"), out(9)}));
  EXPECT_FALSE(otherwise({in(1), out(8), written(5)}, {in(1), out(9), written(6)}));
}

TEST(ReadsOtherwise, AnInputOfOneRunAloneIsNoOtherValue) {
  EXPECT_FALSE(otherwise({in(1), out(8)}, {in(1), in(3, "arg1"), out(9)}));
}

TEST(ReadsOtherwise, WhatHasNoValueIsNoOtherValue) {
  S unreadable = in(0);
  unreadable.flags = kUnreadable;
  EXPECT_FALSE(otherwise({unreadable, out(8)}, {in(1), out(9)}));
}

}  // namespace
}  // namespace opguard::test
