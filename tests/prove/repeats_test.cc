// Traces with their repetitions folded: prove/repeats.h.
#include "prove/repeats.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace opguard::proving {
namespace {

using Labels = std::vector<uint32_t>;

Labels repeated(const Labels& block, int times) {
  Labels all;
  for (int i = 0; i < times; ++i) all.insert(all.end(), block.begin(), block.end());
  return all;
}
Labels joined(std::initializer_list<Labels> parts) {
  Labels all;
  for (const Labels& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST(Repeats, FoldsABlock) {
  const Folded f = folded({0, 1, 2, 1, 2, 1, 2, 3});
  EXPECT_EQ(f.form, "0 (1 2 )x 3 ");
  EXPECT_EQ(f.counts, (std::vector<uint32_t>{3}));
  EXPECT_EQ(f.lengths, (std::vector<uint32_t>{2}));
  // The second 2: leaf 2, in repetition 1 of 3.
  EXPECT_EQ(f.nodes[4].leaf, 2u);
  EXPECT_EQ(f.nodes[4].at, (std::vector<uint32_t>{1}));
  EXPECT_EQ(f.nodes[4].of, (std::vector<uint32_t>{3}));
  EXPECT_TRUE(f.nodes[0].at.empty());
}

TEST(Repeats, LayersWithinMicroBatches) {
  const auto steps = [](int layers, int micro) {
    return joined({{9}, repeated(joined({{7}, repeated({0, 1, 1, 2}, layers), {8}}), micro), {5}});
  };
  const Folded few = folded(steps(2, 2)), many = folded(steps(126, 16));
  EXPECT_EQ(few.form, "9 (7 (0 (1 )x 2 )x 8 )x 5 ");
  EXPECT_EQ(many.form, few.form);
  EXPECT_EQ(many.counts, (std::vector<uint32_t>{16, 126, 2}));
  EXPECT_EQ(many.nodes.size(), steps(126, 16).size());
  const FoldedNode& last = many.nodes[many.nodes.size() - 3];  // before 8 and 5
  EXPECT_EQ(last.at, (std::vector<uint32_t>{15, 125}));
}

TEST(Repeats, AnOddOneAmongThemIsSeen) {
  const Labels all = joined({repeated({0, 1, 2}, 5), {0, 2}, repeated({0, 1, 2}, 5)});
  EXPECT_NE(folded(all).form, folded(repeated({0, 1, 2}, 11)).form);
}

// Whatever is folded, each node keeps its label and its own place.
TEST(Repeats, NothingIsLost) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    Labels all;
    while (all.size() < 60) {
      Labels block;
      for (uint32_t i = 0; i <= random() % 4; ++i) block.push_back(random() % 3);
      const Labels many = repeated(block, 1 + static_cast<int>(random() % 4));
      all.insert(all.end(), many.begin(), many.end());
    }
    const Folded f = folded(all);
    ASSERT_EQ(f.nodes.size(), all.size());
    std::set<std::pair<uint32_t, std::vector<uint32_t>>> places;
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(f.labels.at(f.nodes[i].leaf), all[i]);
      EXPECT_TRUE(places.insert({f.nodes[i].leaf, f.nodes[i].at}).second);
    }
  }
}

}  // namespace
}  // namespace opguard::proving
