#include "record/call_stack.h"

#include <gtest/gtest.h>

namespace opguard {
namespace {

TEST(CallStack, InnermostFirst) {
  const std::vector<Caller> callers = callers_of(
      "/home/me/attention.py:30:Attention.forward\n/home/me/a:b.py:12:main.<locals>.step");
  ASSERT_EQ(callers.size(), 2u);
  EXPECT_EQ(callers[0], (Caller{"/home/me/attention.py", 30, "Attention.forward"}));
  EXPECT_EQ(callers[1], (Caller{"/home/me/a:b.py", 12, "main.<locals>.step"}));
}

TEST(CallStack, WhatIsNoLineOfOneIsLeftOut) {
  EXPECT_TRUE(callers_of("").empty());
  EXPECT_TRUE(callers_of("\n:\n::\nx:y:z\nfile.py:12\n:1:f\nfile.py:1 2:f").empty());
  EXPECT_EQ(callers_of("nothing\nfile.py:3:f\n").size(), 1u);
}

}  // namespace
}  // namespace opguard
