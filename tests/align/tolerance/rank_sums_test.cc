// Of many ranks sums are tried along the dimensions of a mesh, and are found there.
#include "align/tolerance/rank_sums.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "sketched_tensor.h"

namespace opguard {
namespace {

// Along one dimension of a mesh ranks have the same, pieces, or parts of a sum.
enum class Along : uint8_t { same, piece, part };

class RankMesh {
 public:
  explicit RankMesh(uint64_t seed) : random_(seed) {}

  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

  Tensor tensor(Shape shape) {
    Tensor t{std::move(shape), {}};
    int64_t count = 1;
    for (const int64_t n : t.shape) count *= n;
    for (int64_t i = 0; i < count; ++i) t.values.push_back(normal_(random_));
    return t;
  }

  std::vector<Tensor> held(const Tensor& t, const std::vector<std::pair<int64_t, Along>>& mesh,
                           size_t m = 0) {
    if (m == mesh.size()) return {t};
    const auto [ranks, along] = mesh[m];
    std::vector<Tensor> each(static_cast<size_t>(ranks), t), all;
    for (int64_t r = 0; r < ranks && along == Along::piece; ++r)
      each[static_cast<size_t>(r)] = part_of(t, 0, r * t.shape[0] / ranks, t.shape[0] / ranks);
    for (size_t r = 1; r < each.size() && along == Along::part; ++r) {
      each[r] = tensor(t.shape);
      for (size_t i = 0; i < t.values.size(); ++i) each[0].values[i] -= each[r].values[i];
    }
    for (const Tensor& part : each)
      for (Tensor& mine : held(part, mesh, m + 1)) all.push_back(std::move(mine));
    return all;
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<> normal_;
};

TensorPlacement found_of(const Tensor& whole, const std::vector<Tensor>& ranks) {
  std::vector<RankValue> held;
  for (uint32_t r = 0; r < ranks.size(); ++r) held.push_back(ranks[r].held(r));
  PiecesWanted wanted;
  if (ranks[0].shape != whole.shape) wanted.locals = {ranks[0].shape};
  return find_placement({whole.shape, sketch_sets(whole.elements(), FloatType::float64, wanted)},
                        held, 1e-6);
}

TEST(ManyRanks, AreFoundInMeshesOfManyRanks) {
  RankMesh maker(64);
  for (const int64_t world : {24, 32, 64, 96}) {
    const Tensor whole = maker.tensor({192, 4});
    for (int i = 0; i < 12; ++i) {
      // Up to three dimensions, in any order.
      std::vector<std::pair<int64_t, Along>> mesh;
      bool adds = false;
      for (int64_t rest = world; rest > 1; rest /= mesh.back().first) {
        int64_t ranks = mesh.size() == 2 ? rest : 1 + maker.below(rest);
        while (rest % ranks != 0) --ranks;
        if (ranks == 1) ranks = rest;
        mesh.emplace_back(ranks, static_cast<Along>(maker.below(3)));
        adds |= mesh.back().second == Along::part;
      }
      std::string text;
      for (const auto& [ranks, along] : mesh)
        text += std::to_string(ranks) + " " + std::to_string(static_cast<int>(along)) + "; ";
      const TensorPlacement found = found_of(whole, maker.held(whole, mesh));
      EXPECT_LE(found.error, 1e-6) << text;
      EXPECT_EQ(found.kind == PlacementKind::partial, adds) << text;
      EXPECT_TRUE(found.stray.empty()) << text;
      EXPECT_EQ(found.omitted, 0u) << text;
    }
  }
}

// A rank whose part is another one's is no group's.
TEST(ManyRanks, OfManyRanksAWrongPartIsADifference) {
  RankMesh maker(65);
  const Tensor whole = maker.tensor({32, 4});
  std::vector<Tensor> ranks = maker.held(whole, {{4, Along::same}, {8, Along::part}});
  EXPECT_EQ(found_of(whole, ranks).kind, PlacementKind::partial);
  ranks[13].values[2] += 1;
  const TensorPlacement found = found_of(whole, ranks);
  EXPECT_EQ(found.kind, PlacementKind::unknown);
}

// Two pieces a rank, of so many that not all pairs are tried.
TEST(ManyRanks, OfManyRanksAZigzagIsFound) {
  RankMesh maker(66);
  const Tensor whole = maker.tensor({128, 4});
  std::vector<Tensor> zigzag, joint;
  for (int64_t r = 0; r < 32; ++r) {
    zigzag.push_back(joined(part_of(whole, 0, 2 * r, 2), part_of(whole, 0, 2 * (63 - r), 2), 0));
    joint.push_back(joined(part_of(whole, 0, 2 * r, 2), part_of(whole, 0, 64 + 2 * r, 2), 0));
  }
  EXPECT_EQ(found_of(whole, zigzag).kind, PlacementKind::pieces);
  EXPECT_EQ(found_of(whole, joint).kind, PlacementKind::pieces);
  EXPECT_EQ(found_of(whole, joint).omitted, 0u);
}

}  // namespace
}  // namespace opguard
