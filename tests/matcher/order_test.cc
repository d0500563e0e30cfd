#include "matcher/order.h"

#include <functional>
#include <random>

#include "gtest/gtest.h"

namespace opguard {
namespace {

using Similarity = std::function<double(size_t, size_t)>;

Similarity of_words(const std::string& a, const std::string& b) {
  return [a, b](size_t i, size_t j) { return a[i] == b[j] ? 1.0 : 0.0; };
}

std::vector<int> places(const std::string& a, const std::string& b) {
  std::vector<int> out;
  for (const Placement& p : pair_in_order(a.size(), b.size(), of_words(a, b))) out.push_back(p.at);
  return out;
}

TEST(Order, KeepsOrder) {
  EXPECT_EQ(places("abc", "abc"), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(places("abc", "xaybzc"), (std::vector<int>{1, 3, 5}));
  EXPECT_EQ(places("abc", "ac"), (std::vector<int>{0, -1, 1}));
  EXPECT_EQ(places("", "a"), (std::vector<int>{}));
  EXPECT_EQ(places("a", ""), (std::vector<int>{-1}));
}

TEST(Order, ATieHasNoLead) {
  std::vector<Placement> p = pair_in_order(1, 2, of_words("a", "aa"));
  EXPECT_DOUBLE_EQ(p[0].lead, 0);
  EXPECT_GE(p[0].rival, 0);
  p = pair_in_order(2, 1, of_words("aa", "a"));
  EXPECT_DOUBLE_EQ(p[0].lead, 0);
  EXPECT_DOUBLE_EQ(p[1].lead, 0);
  p = pair_in_order(3, 3, of_words("xax", "xax"));
  for (const Placement& q : p) EXPECT_GT(q.lead, 0);
}

// The best total of all pairings that keep order and, if given, treat item `i` in one way. With
// `at` -2 it is any way, with -1 unpaired, else paired with `at`.
double best_total(size_t n, size_t m, const Similarity& s, size_t item, int at, size_t i = 0,
                  size_t j = 0) {
  if (i == n) return 0;
  double best = -1e9;
  bool may_skip = i != item || at < 0;
  if (may_skip) best = best_total(n, m, s, item, at, i + 1, j);
  for (size_t k = j; k < m; ++k) {
    if (s(i, k) <= 0 || (i == item && at != -2 && at != static_cast<int>(k))) continue;
    best = std::max(best, s(i, k) + best_total(n, m, s, item, at, i + 1, k + 1));
  }
  return best;
}

TEST(Order, AgreesWithExhaustiveSearch) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    size_t n = 1 + random() % 5, m = 1 + random() % 5;
    std::vector<double> table(n * m);
    for (double& v : table) v = random() % 3 == 0 ? 0 : (random() % 8) / 8.0;
    Similarity s = [&](size_t i, size_t j) { return table[i * m + j]; };
    double best = best_total(n, m, s, 0, -2);
    std::vector<Placement> placed = pair_in_order(n, m, s);
    double total = 0;
    int last = -1;
    for (size_t i = 0; i < n; ++i) {
      const Placement& p = placed[i];
      if (p.at >= 0) {
        EXPECT_GT(p.at, last);
        last = p.at;
        total += s(i, static_cast<size_t>(p.at));
      }
      double other = p.at >= 0 ? best_total(n, m, s, i, -1) : -1e9;
      for (int j = 0; j < static_cast<int>(m); ++j)
        if (j != p.at) other = std::max(other, best_total(n, m, s, i, j));
      if (other > -1e8) {
        EXPECT_NEAR(p.lead, best - other, 1e-6) << round << " " << i;
      }
    }
    EXPECT_NEAR(total, best, 1e-6) << round;
  }
}

TEST(Order, LongSequencesAreCutAtAnchors) {
  constexpr size_t kSize = 5000;
  std::vector<std::pair<size_t, size_t>> anchors;
  for (size_t k = 0; k < kSize; k += 100) anchors.emplace_back(k, k);
  std::vector<Placement> placed =
      pair_in_order(kSize, kSize, [](size_t i, size_t j) { return i == j ? 1.0 : 0.0; }, anchors);
  for (size_t i = 0; i < kSize; ++i) ASSERT_EQ(placed[i].at, static_cast<int>(i));
}

}  // namespace
}  // namespace opguard
