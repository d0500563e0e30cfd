#include "record/entry_search.h"

#include <gtest/gtest.h>

namespace opguard {
namespace {

TEST(EntrySearch, FindsTheFirstFromWhereverItBegins) {
  for (uint64_t entries = 0; entries <= 40; ++entries)
    for (uint64_t first = 0; first <= entries; ++first)
      for (uint64_t near = 0; near <= entries + 2; ++near) {
        uint64_t asked = 0;
        const auto holds = [&](uint64_t i) -> std::optional<bool> {
          EXPECT_LT(i, entries);
          ++asked;
          return i >= first;
        };
        EXPECT_EQ(first_entry(entries, holds, near), first) << entries << ' ' << near;
        EXPECT_LE(asked, 12u);
        EXPECT_EQ(first_entry(entries, holds), first);
      }
}

TEST(EntrySearch, NearItFewAreAsked) {
  for (const uint64_t away : {0, 1, 2, 10, 1000}) {
    uint64_t asked = 0;
    const auto holds = [&](uint64_t i) -> std::optional<bool> {
      ++asked;
      return i >= 73'100;
    };
    EXPECT_EQ(first_entry(100'000, holds, 73'100 + away), 73'100u);
    EXPECT_LE(asked, away < 2 ? 4u : away == 1000 ? 21u : 9u) << away;
  }
}

TEST(EntrySearch, WhatCannotBeToldEndsIt) {
  const auto nothing = [](uint64_t) { return std::optional<bool>(); };
  EXPECT_FALSE(first_entry(10, nothing));
  EXPECT_FALSE(first_entry(10, nothing, 3));
  EXPECT_EQ(first_entry(0, nothing), 0u);
}

}  // namespace
}  // namespace opguard
