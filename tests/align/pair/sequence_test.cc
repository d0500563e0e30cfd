#include "align/pair/sequence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

namespace opguard {
namespace {

using Tokens = std::vector<Token>;

int total(const Tokens& a, const Tokens& b, const Matches& matches) {
  int sum = 0;
  for (auto [i, j] : matches) sum += pair_score(a[i], b[j]);
  return sum;
}

// Pairs increase on both sides and never join two boundaries.
bool valid(const Tokens& a, const Tokens& b, const Matches& matches) {
  for (size_t k = 0; k < matches.size(); ++k) {
    auto [i, j] = matches[k];
    if (i >= a.size() || j >= b.size() || pair_score(a[i], b[j]) == 0) return false;
    if (k > 0 && (i <= matches[k - 1].first || j <= matches[k - 1].second)) return false;
  }
  return true;
}

int full_dp(const Tokens& a, const Tokens& b) {
  std::vector<std::vector<int>> best(a.size() + 1, std::vector<int>(b.size() + 1, 0));
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t j = 1; j <= b.size(); ++j) {
      const int s = pair_score(a[i - 1], b[j - 1]);
      best[i][j] = std::max({best[i - 1][j], best[i][j - 1], s > 0 ? best[i - 1][j - 1] + s : 0});
    }
  return best[a.size()][b.size()];
}

// A run of `size` events over few boundaries, so that most keys recur.
Tokens random_tokens(std::mt19937& rng, uint32_t size, uint32_t keys, uint32_t contents) {
  Tokens tokens;
  std::vector<uint32_t> seen(keys + 1);
  for (uint32_t i = 0; i < size; ++i) {
    Token t;
    t.key = 1 + rng() % keys;
    t.content = t.key * 1000 + rng() % contents;
    t.inputs = t.content / 3;
    t.shapes = rng() % 2;
    t.scalars = rng() % 2;
    t.step = i * 3 / std::max(size, 1u);
    t.occurrence = seen[t.key]++;
    tokens.push_back(t);
  }
  return tokens;
}

std::string describe(const Tokens& a, const Tokens& b) {
  std::string text;
  for (const Tokens* side : {&a, &b}) {
    for (const Token& t : *side)
      text += std::to_string(t.key) + "/" + std::to_string(t.content) + "@" +
              std::to_string(t.step) + " ";
    text += "\n";
  }
  return text;
}

TEST(Sequence, EqualsFullDpInScore) {
  std::mt19937 rng(7);
  for (int round = 0; round < 5000; ++round) {
    const Tokens a = random_tokens(rng, rng() % 14, 1 + rng() % 5, 1 + rng() % 4);
    const Tokens b = random_tokens(rng, rng() % 14, 1 + rng() % 5, 1 + rng() % 4);
    const Matches matches = align_sequences(a, b);
    ASSERT_TRUE(valid(a, b, matches)) << describe(a, b);
    ASSERT_EQ(total(a, b, matches), full_dp(a, b)) << describe(a, b);
  }
}

// Not only as good: the very same pairs.
TEST(Sequence, SparseWindowsEqualDenseOnes) {
  std::mt19937 rng(13);
  for (int round = 0; round < 1500; ++round) {
    const uint32_t keys = 4 + rng() % 30, contents = 1 + rng() % 20;
    const Tokens a = random_tokens(rng, 30 + rng() % 80, keys, contents);
    const Tokens b = random_tokens(rng, 30 + rng() % 80, keys, contents);
    ASSERT_EQ(align_sequences(a, b), align_sequences(a, b, {1 << 16, 1 << 26, 0}))
        << describe(a, b);
  }
}

TEST(Sequence, AnchorsSplitsAndBandsGiveValidPairs) {
  std::mt19937 rng(11);
  for (int round = 0; round < 3000; ++round) {
    const Tokens a = random_tokens(rng, rng() % 60, 1 + rng() % 6, 1 + rng() % 50);
    const Tokens b = random_tokens(rng, rng() % 60, 1 + rng() % 6, 1 + rng() % 50);
    for (const Limits& limits : {Limits{0, 1 << 20}, Limits{0, 16}, Limits{0, 0}, Limits{9, 400},
                                 Limits{0, 16, 0}, Limits{9, 400, 0}}) {
      const Matches matches = align_sequences(a, b, limits);
      ASSERT_TRUE(valid(a, b, matches)) << describe(a, b);
      ASSERT_LE(total(a, b, matches), full_dp(a, b));
    }
  }
}

TEST(Sequence, ABandEqualsFullDpWhereItHoldsTheTruth) {
  std::mt19937 rng(3);
  for (int round = 0; round < 1000; ++round) {
    // One step and no equal value: neither anchors nor splits, only the band. Six edits at most,
    // and a band is at least eight wide.
    Tokens a;
    for (uint64_t key = 1; key <= 20 + rng() % 80; ++key) a.push_back({key, 2 * key, 0, key % 3});
    Tokens b = a;
    for (Token& t : b) ++t.content;
    for (uint32_t k = rng() % 7; k > 0; --k) {
      const size_t at = rng() % b.size();
      if (rng() % 2) {
        b.erase(b.begin() + at);
      } else {
        b.insert(b.begin() + at, {1000 + k, 0});
      }
    }
    const Matches matches = align_sequences(a, b, {0, 1, 0});
    ASSERT_TRUE(valid(a, b, matches));
    ASSERT_EQ(total(a, b, matches), full_dp(a, b)) << describe(a, b);
  }
}

TEST(Sequence, AlikeGivesTheDiagonal) {
  std::mt19937 rng(5);
  const Tokens a = random_tokens(rng, 20000, 300, 3);
  const Matches matches = align_sequences(a, a);
  ASSERT_EQ(matches.size(), a.size());
  for (uint32_t i = 0; i < a.size(); ++i) EXPECT_EQ(matches[i], std::pair(i, i));
}

TEST(Sequence, EmptySides) {
  std::mt19937 rng(5);
  const Tokens a = random_tokens(rng, 10, 3, 3);
  EXPECT_TRUE(align_sequences(a, {}).empty());
  EXPECT_TRUE(align_sequences({}, a).empty());
}

// A training run: steps x layers x boundaries; the same boundaries in every layer, values unlike.
Tokens training(uint32_t steps, uint32_t layers, uint32_t boundaries) {
  Tokens tokens;
  std::vector<uint32_t> seen(boundaries + 1);
  for (uint32_t step = 0; step < steps; ++step)
    for (uint32_t layer = 0; layer < layers; ++layer)
      for (uint32_t k = 1; k <= boundaries; ++k) {
        Token t;
        t.key = k;
        t.content = (uint64_t(step) << 40) | (uint64_t(layer) << 20) | k;
        t.inputs = t.content - 1;
        t.shapes = k % 7;
        t.step = step;
        t.occurrence = seen[k]++;
        tokens.push_back(t);
      }
  return tokens;
}

struct Edited {
  Tokens tokens;
  std::vector<int64_t> origin;  // position in the original; -1: inserted
};

// Inserts copies of near-by events, deletes and moves, as a refactor does; the values of every
// event from `pivot` on differ from the original's.
Edited edit(const Tokens& a, std::mt19937& rng, double inserted, double deleted, double moved,
            size_t pivot) {
  Edited result;
  auto chance = [&](double p) { return std::uniform_real_distribution<>(0, 1)(rng) < p; };
  for (size_t i = 0; i < a.size(); ++i) {
    if (!chance(deleted)) {
      result.tokens.push_back(a[i]);
      result.origin.push_back(int64_t(i));
    }
    if (chance(inserted)) {
      Token copy = a[std::min(a.size() - 1, i > 20 ? i - 20 + rng() % 40 : rng() % 20)];
      copy.step = a[i].step;
      copy.content = rng();
      copy.inputs = rng();
      result.tokens.push_back(copy);
      result.origin.push_back(-1);
    }
  }
  for (size_t k = 0; k < size_t(moved * double(a.size())); ++k) {
    const size_t i = rng() % (result.tokens.size() - 8), j = i + 1 + rng() % 7;
    if (result.tokens[i].step != result.tokens[j].step) continue;
    std::rotate(result.tokens.begin() + i, result.tokens.begin() + i + 1,
                result.tokens.begin() + j + 1);
    std::rotate(result.origin.begin() + i, result.origin.begin() + i + 1,
                result.origin.begin() + j + 1);
  }
  std::map<uint64_t, uint32_t> seen;
  for (size_t j = 0; j < result.tokens.size(); ++j) {
    Token& t = result.tokens[j];
    t.occurrence = seen[t.key]++;
    if (result.origin[j] >= int64_t(pivot)) {
      if (result.origin[j] > int64_t(pivot)) t.inputs += 1ull << 60;
      t.content += 1ull << 60;
    }
  }
  return result;
}

// A window that is wider than the band that is looked at first. Some edits do not lead out of it,
// and some do.
TEST(Sequence, FarFromTheDiagonalNothingIsMissed) {
  std::mt19937 rng(23);
  const Tokens a = training(/*steps=*/1, /*layers=*/60, /*boundaries=*/10);
  for (int round = 0; round < 60; ++round) {
    Tokens b = edit(a, rng, .01 * (round % 7), .01 * (round % 5), .01 * (round % 3),
                    round % 2 ? 0 : a.size())
                   .tokens;
    // A block that is gone or comes later shifts what is behind it.
    if (const uint32_t width = round % 4 * 50; width > 0) {
      const size_t at = rng() % (b.size() - 2 * width);
      if (round % 8 < 4)
        b.erase(b.begin() + at, b.begin() + at + width);
      else
        std::rotate(b.begin() + at, b.begin() + at + width, b.begin() + at + 2 * width);
    }
    for (Token& t : b) t.inputs += round % 3 == 0;
    // Without anchors.
    const Limits sparse{1ull << 40, 1ull << 26, 1ull << 22}, dense{1ull << 40, 1ull << 26, 0};
    ASSERT_EQ(align_sequences(a, b, sparse), align_sequences(a, b, dense)) << round;
    ASSERT_EQ(align_sequences(b, a, sparse), align_sequences(b, a, dense)) << round;
  }
}

// The same, where any of many pairings is the best: the one that is taken leads far away.
TEST(Sequence, OfEquallyGoodOnesTheSameIsTaken) {
  std::mt19937 rng(29);
  for (int round = 0; round < 200; ++round) {
    uint32_t others = 2;
    auto one_key_among_others = [&](uint32_t percent) {
      Tokens tokens;
      for (uint32_t i = 0; i < 300 + rng() % 100; ++i) {
        const bool common = rng() % 100 < percent;
        tokens.push_back(
            {.key = common ? 1 : others++, .content = others++, .occurrence = others++});
      }
      return tokens;
    };
    const Tokens a = one_key_among_others(20), b = one_key_among_others(20 + rng() % 20);
    const Limits sparse{1ull << 40}, dense{1ull << 40, 1ull << 26, 0};
    ASSERT_EQ(align_sequences(a, b, sparse), align_sequences(a, b, dense)) << round;
    ASSERT_EQ(align_sequences(b, a, sparse), align_sequences(b, a, dense)) << round;
  }
}

struct Truth {
  double found, wrong;
};

Truth measure(double inserted, double deleted, double moved) {
  std::mt19937 rng(17);
  const Tokens a = training(/*steps=*/6, /*layers=*/8, /*boundaries=*/40);
  uint64_t common = 0, good = 0, given = 0;
  for (int round = 0; round < 5; ++round) {
    const size_t pivot = a.size() / 2;
    const Edited b = edit(a, rng, inserted, deleted, moved, pivot);
    const Matches matches = align_sequences(a, b.tokens);
    EXPECT_TRUE(valid(a, b.tokens, matches));
    for (int64_t origin : b.origin) common += origin >= 0;
    for (auto [i, j] : matches) good += b.origin[j] == int64_t(i);
    given += matches.size();
  }
  return {double(good) / double(common), double(given - good) / double(given)};
}

TEST(Sequence, FindsTheTruthAfterEdits) {
  const Truth insertions = measure(.01, .01, 0);
  EXPECT_GT(insertions.found, .995);
  EXPECT_LT(insertions.wrong, .005);
  // Of two events that changed places one has to stay alone.
  const Truth moves = measure(0, 0, .02);
  EXPECT_GT(moves.found, .96);
  EXPECT_LT(moves.wrong, .005);
  const Truth all = measure(.05, .05, .05);
  EXPECT_GT(all.found, .88);
  EXPECT_LT(all.wrong, .03);
}

TEST(Sequence, NothingInCommonAfterThePivotStaysBounded) {
  // 60,000 events of one step with no equal value: only the band keeps this in memory.
  Tokens a = training(1, 1500, 40), b = a;
  for (Token& t : b) t.content += 1, t.inputs += 1;
  b.erase(b.begin() + 100, b.begin() + 140);
  const Matches matches = align_sequences(a, b);
  EXPECT_EQ(matches.size(), b.size());
}

}  // namespace
}  // namespace opguard
