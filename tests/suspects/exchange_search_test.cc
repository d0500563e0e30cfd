#include "suspects/exchange_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace opguard {
namespace {

// The cause among so many, found by halves.
uint32_t runs_to_find(std::vector<double> likelihood, size_t cause, std::optional<size_t>& found) {
  ExchangeSearch search(std::move(likelihood));
  const uint32_t most = search.most_runs();
  uint32_t runs = 0;
  for (auto asked = search.next(); !asked.empty(); asked = search.next()) {
    ++runs;
    search.tell(asked, std::find(asked.begin(), asked.end(), cause) != asked.end());
  }
  found = search.found();
  EXPECT_LE(runs, std::max<uint32_t>(most, 1));
  return runs;
}

TEST(ExchangeSearch, FindsEveryCauseByHalves) {
  for (size_t count = 1; count <= 8; ++count)
    for (size_t cause = 0; cause < count; ++cause) {
      std::optional<size_t> found;
      runs_to_find(std::vector<double>(count, 1), cause, found);
      EXPECT_EQ(found, cause) << count;
    }
}

TEST(ExchangeSearch, TheLikeliestIsAskedFirst) {
  std::optional<size_t> found;
  EXPECT_EQ(runs_to_find({16, 1, 1, 1}, 0, found), 1u);
  EXPECT_EQ(found, 0u);
}

TEST(ExchangeSearch, TheShareOfWhatIsAskedIsOfWhatIsLeft) {
  ExchangeSearch search({6, 1, 1});
  EXPECT_DOUBLE_EQ(search.share({0}), 0.75);
  EXPECT_DOUBLE_EQ(search.share(search.left()), 1);
  search.tell({0}, /*healed=*/false);
  EXPECT_DOUBLE_EQ(search.share({1}), 0.5);
}

// Two halves of what healed: where the program fails with the one, the other tells as much.
TEST(ExchangeSearch, WhereAHalfFailsTheOtherIsAsked) {
  ExchangeSearch search({1, 1, 1, 1});
  search.tell({0, 1, 2, 3}, /*healed=*/true);
  search.failed({0, 1});
  EXPECT_EQ(search.next(), (std::vector<size_t>{2, 3}));
  search.tell({2, 3}, /*healed=*/false);
  EXPECT_EQ(search.healed(), (std::vector<size_t>{0, 1}));
  search.failed({0});
  EXPECT_EQ(search.next(), (std::vector<size_t>{1}));
  search.failed({1});
  EXPECT_TRUE(search.next().empty());
  EXPECT_EQ(search.healed(), (std::vector<size_t>{0, 1}));
}

TEST(ExchangeSearch, NothingIsFoundWhereNothingHeals) {
  ExchangeSearch search({1, 1, 1});
  for (auto asked = search.next(); !asked.empty(); asked = search.next()) search.tell(asked, false);
  EXPECT_FALSE(search.found());
  EXPECT_TRUE(search.healed().empty());
}

TEST(ExchangeSearch, WhatHealedTogetherIsKnownBeforeTheOneIs) {
  ExchangeSearch search({1, 1, 1, 1});
  search.tell(search.next(), true);
  EXPECT_EQ(search.healed(), (std::vector<size_t>{0, 1}));
  EXPECT_FALSE(search.found());
}

}  // namespace
}  // namespace opguard
