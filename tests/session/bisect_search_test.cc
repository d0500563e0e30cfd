// The search against brute force: random histories with merges, a fault, and commits that do not
// run.
#include "session/bisect_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace opguard {
namespace {

using Set = std::set<uint32_t>;

CommitParents line(uint32_t count) {
  CommitParents parents(count);
  for (uint32_t i = 1; i < count; ++i) parents[i] = {i - 1};
  return parents;
}

// All are ancestors of the last, as the commits between GOOD and BAD are.
CommitParents random_history(std::mt19937& random, uint32_t count) {
  CommitParents parents(count);
  for (uint32_t i = 1; i < count; ++i) {
    const uint32_t back = std::min<uint32_t>(i, 4);
    for (uint32_t k = 0; k < 1 + (random() % 3 == 0); ++k) {
      const uint32_t parent = i - 1 - random() % back;
      if (std::find(parents[i].begin(), parents[i].end(), parent) == parents[i].end())
        parents[i].push_back(parent);
    }
  }
  Set with_child;
  for (const auto& all : parents) with_child.insert(all.begin(), all.end());
  for (uint32_t i = 0; i + 1 < count; ++i)
    if (!with_child.count(i)) parents.back().push_back(i);
  return parents;
}

// By walking, without a bit set.
Set ancestors(const CommitParents& parents, uint32_t commit) {
  Set found;
  std::vector<uint32_t> open = {commit};
  while (!open.empty()) {
    const uint32_t at = open.back();
    open.pop_back();
    if (!found.insert(at).second) continue;
    open.insert(open.end(), parents[at].begin(), parents[at].end());
  }
  return found;
}

// Those that may be the first bad one: bad is what has it among its ancestors, and all marks agree.
Set possible(const CommitParents& parents, const std::vector<CommitMark>& marks) {
  Set found;
  for (uint32_t culprit = 0; culprit < parents.size(); ++culprit) {
    bool agrees = true;
    for (uint32_t i = 0; i < parents.size(); ++i) {
      const bool bad = ancestors(parents, i).count(culprit) > 0;
      agrees &= !(marks[i] == CommitMark::good && bad) && !(marks[i] == CommitMark::bad && !bad);
    }
    if (agrees) found.insert(culprit);
  }
  return found;
}

TEST(BisectSearch, FindsEveryFaultOfRandomHistories) {
  std::mt19937 random(7);
  for (int round = 0; round < 150; ++round) {
    const uint32_t count = 1 + random() % 24, wanted = 1 + random() % 3;
    const CommitParents parents = random_history(random, count);
    const uint32_t culprit = random() % count;
    Set broken;
    for (uint32_t i = 0; i + 1 < count; ++i)
      if (round % 2 && random() % 5 == 0) broken.insert(i);
    std::vector<CommitMark> marks(count, CommitMark::unknown);
    marks.back() = CommitMark::bad;
    Set tried;
    while (true) {
      const BisectStep step = bisect_step(parents, marks, wanted);
      EXPECT_EQ(Set(step.suspects.begin(), step.suspects.end()), possible(parents, marks));
      if (step.next.empty()) break;
      ASSERT_LE(step.next.size(), wanted);
      for (uint32_t i : step.next) {
        ASSERT_TRUE(tried.insert(i).second) << "tried twice";
        const bool bad = ancestors(parents, i).count(culprit) > 0;
        marks[i] = broken.count(i) ? CommitMark::skipped : bad ? CommitMark::bad : CommitMark::good;
      }
    }
    // What remains holds the fault; of more than one all but the last were skipped.
    const BisectStep end = bisect_step(parents, marks, wanted);
    const Set left(end.suspects.begin(), end.suspects.end());
    EXPECT_TRUE(left.count(culprit));
    for (uint32_t i : left) EXPECT_TRUE(i == end.suspects.back() || broken.count(i));
    if (broken.empty()) {
      EXPECT_EQ(left, Set{culprit});
    }
  }
}

TEST(BisectSearch, ALineIsHalved) {
  for (uint32_t count : {1u, 2u, 3u, 7u, 64u, 100u}) {
    const CommitParents parents = line(count);
    uint32_t most = 0;
    for (uint32_t culprit = 0; culprit < count; ++culprit) {
      std::vector<CommitMark> marks(count, CommitMark::unknown);
      uint32_t tries = 0;
      for (BisectStep step; !(step = bisect_step(parents, marks)).next.empty(); ++tries)
        marks[step.next[0]] = step.next[0] >= culprit ? CommitMark::bad : CommitMark::good;
      EXPECT_EQ(bisect_step(parents, marks).suspects, std::vector<uint32_t>{culprit});
      most = std::max(most, tries);
    }
    EXPECT_EQ(most, tries_left(count)) << count;
  }
}

// The commit that halves is the best of all by brute force too.
TEST(BisectSearch, TheCommitToTryHalvesBest) {
  std::mt19937 random(11);
  for (int round = 0; round < 100; ++round) {
    const CommitParents parents = random_history(random, 2 + random() % 20);
    const std::vector<CommitMark> marks(parents.size(), CommitMark::unknown);
    const size_t all = parents.size();
    auto worst = [&](uint32_t i) {
      const size_t share = ancestors(parents, i).size();
      return std::max(share, all - share);
    };
    size_t best = all;
    for (uint32_t i = 0; i + 1 < all; ++i) best = std::min(best, worst(i));
    EXPECT_EQ(worst(bisect_step(parents, marks).next[0]), best);
  }
}

TEST(BisectSearch, SeveralAtOnceCutALineInEqualParts) {
  const std::vector<CommitMark> marks(100, CommitMark::unknown);
  EXPECT_EQ(bisect_step(line(100), marks, 3).next, (std::vector<uint32_t>{24, 49, 74}));
}

// Twenty broken commits in the middle are not asked one after the other.
TEST(BisectSearch, LooksAwayFromCommitsThatDoNotRun) {
  std::vector<CommitMark> marks(64, CommitMark::unknown);
  uint32_t skips = 0;
  for (BisectStep step; !(step = bisect_step(line(64), marks)).next.empty();) {
    const uint32_t i = step.next[0];
    const bool broken = i >= 22 && i < 42;
    skips += broken;
    marks[i] = broken ? CommitMark::skipped : i >= 60 ? CommitMark::bad : CommitMark::good;
  }
  EXPECT_LE(skips, 4u);
}

TEST(BisectSearch, AGoodCommitBehindABadOneIsPassedOver) {
  std::vector<CommitMark> marks(10, CommitMark::unknown);
  marks[3] = CommitMark::bad;
  marks[6] = CommitMark::good;  // it was mended, and broken again
  const BisectStep step = bisect_step(line(10), marks);
  EXPECT_EQ(step.bad, 3u);
  EXPECT_EQ(step.suspects, (std::vector<uint32_t>{0, 1, 2, 3}));
}

}  // namespace
}  // namespace opguard
