// What DTensor declares of uneven shards, beside what ranks hold. Of 2,000 right ones none is
// called otherwise, and of those over wrong placements none is called as found.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "align/tolerance/declaration.h"
#include "align/tolerance/declared_cut.h"
#include "runtime/fingerprint/slices.h"
#include "sketched_tensor.h"

namespace opguard {
namespace {

using enum DeclaredKind;

struct MeshCase {
  Tensor whole;
  std::vector<Tensor> held;
  Declaration of;
};

class MeshMaker {
 public:
  explicit MeshMaker(uint64_t seed) : random_(seed) {}

  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

  Tensor tensor(Shape shape) {
    Tensor t{std::move(shape), {}};
    int64_t count = 1;
    for (const int64_t n : t.shape) count *= n;
    for (int64_t i = 0; i < count; ++i) t.values.push_back(normal_(random_));
    return t;
  }

  // As torch.chunk cuts, and as _StridedShard puts such parts together.
  std::vector<Tensor> cut(const Tensor& t, const DeclaredAlong& way, int64_t ranks) {
    const auto dim = static_cast<size_t>(way.dim);
    const int64_t parts = ranks * way.split, size = t.shape[dim];
    const int64_t each = (size + parts - 1) / parts;
    std::vector<Tensor> all;
    for (int64_t r = 0; r < ranks; ++r) {
      Tensor mine = part_of(t, dim, 0, 0);
      for (int64_t s = 0; s < way.split; ++s) {
        const int64_t first = std::min((s * ranks + r) * each, size);
        mine = joined(mine, part_of(t, dim, first, std::min(each, size - first)), dim);
      }
      all.push_back(std::move(mine));
    }
    return all;
  }

  std::vector<Tensor> distributed(const Tensor& t, const Declaration& of, size_t along = 0) {
    if (along == of.mesh.size()) return {t};
    const auto ranks = static_cast<int64_t>(of.mesh[along]);
    std::vector<Tensor> each(static_cast<size_t>(ranks), t), all;
    if (of.along[along].kind == shard) each = cut(t, of.along[along], ranks);
    if (of.along[along].kind == partial)
      for (int64_t r = 1; r < ranks; ++r) {
        each[static_cast<size_t>(r)] = tensor(t.shape);
        for (size_t i = 0; i < t.values.size(); ++i)
          each[0].values[i] -= each[static_cast<size_t>(r)].values[i];
      }
    for (const Tensor& part : each)
      for (Tensor& mine : distributed(part, of, along + 1)) all.push_back(std::move(mine));
    return all;
  }

  Declaration declaration(uint32_t ranks) {
    Declaration of;
    for (uint32_t rest = ranks; rest > 1 || of.mesh.empty(); rest /= of.mesh.back()) {
      of.mesh.push_back(rest % 2 == 0 && below(2) == 0 ? rest / 2 : rest);
      const DeclaredKind kinds[] = {replicate, shard, shard, shard, partial};
      of.along.push_back({kinds[below(5)], static_cast<int32_t>(below(2))});
    }
    if (of.along.size() == 2 && of.along[0].kind == shard && of.along[0] == of.along[1] &&
        below(2) == 0)
      of.along[0].split = of.mesh[1];
    for (uint32_t rank = 0; rank < ranks; ++rank) of.ranks.push_back(rank);
    return of;
  }

  MeshCase make(const Declaration& of, double noise) {
    MeshCase made{tensor({5 + below(40), 5 + below(40), 1 + below(3)}), {}, of};
    made.held = distributed(made.whole, of);
    for (Tensor& t : made.held)
      for (double& x : t.values) x *= 1 + noise * normal_(random_);
    return made;
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<> normal_;
};

bool is_uneven(const MeshCase& made) {
  for (const Tensor& t : made.held)
    for (size_t d = 0; d < t.shape.size(); ++d)
      if (t.shape[d] == 0 || made.whole.shape[d] % t.shape[d] != 0) return true;
  return false;
}

WholeValue reference_of(const MeshCase& made) {
  UnevenCuts known;
  for (size_t d = 0; d < 2; ++d) {
    std::vector<int64_t> sizes;
    for (const Tensor& t : made.held) sizes.push_back(t.shape[d]);
    if (sizes != std::vector<int64_t>(sizes.size(), sizes[0])) known.add_parts(sizes);
  }
  const auto world = static_cast<int64_t>(made.held.size());
  PiecesWanted wanted;
  std::vector<Shape> shapes;
  for (const Tensor& t : made.held)
    if (std::find(shapes.begin(), shapes.end(), t.shape) == shapes.end()) shapes.push_back(t.shape);
  for (const Shape& local : shapes) {
    if (cuts(made.whole.shape, local, world)) wanted.locals.push_back(local);
    for (UnevenPieces& pieces : known.pieces(made.whole.shape, local, world, {}))
      wanted.uneven.push_back(std::move(pieces));
  }
  return {made.whole.shape, sketch_sets(made.whole.elements(), FloatType::float64, wanted)};
}

DeclaredState state_of(const MeshCase& made, const Declaration& declared, double allowed) {
  const WholeValue whole = reference_of(made);
  std::vector<RankValue> held;
  for (uint32_t r = 0; r < made.held.size(); ++r) held.push_back(made.held[r].held(r));
  return check_declaration(whole, held, std::vector<Declaration>(held.size(), declared),
                           find_placement(whole, held, allowed), allowed);
}

std::string shown(const MeshCase& made, const Declaration& of) {
  std::string text;
  for (const int64_t n : made.whole.shape) text += std::to_string(n) + " ";
  for (size_t m = 0; m < of.mesh.size(); ++m)
    text += "; " + std::to_string(static_cast<int>(of.along[m].kind)) + " of dimension " +
            std::to_string(of.along[m].dim) + " split " + std::to_string(of.along[m].split) +
            " over " + std::to_string(of.mesh[m]);
  return text;
}

TEST(UnevenDeclaration, NoRightOneIsCalledWrong) {
  MeshMaker maker(5);
  const double noises[] = {0, 1e-7, 1e-3, 0.03};
  int all = 0, untold = 0, wrong = 0;
  for (int i = 0; all < 2000; ++i) {
    const Declaration of = maker.declaration(static_cast<uint32_t>(2 + maker.below(7)));
    const double noise = noises[i % 4];
    const MeshCase made = maker.make(of, noise);
    if (!is_uneven(made)) continue;
    ++all;
    const DeclaredState state = state_of(made, of, 4 * std::max(noise, 6e-8));
    untold += state == DeclaredState::untold;
    if (state == DeclaredState::otherwise && ++wrong <= 10) ADD_FAILURE() << shown(made, of);
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_LT(untold, all / 10);
}

TEST(UnevenDeclaration, NoWrongOneIsCalledRight) {
  MeshMaker maker(6);
  int all = 0, told = 0;
  while (all < 1000) {
    const auto ranks = static_cast<uint32_t>(2 + maker.below(7));
    const Declaration of = maker.declaration(ranks), other = maker.declaration(ranks);
    const auto adds = [](const auto& along) { return along.kind == partial; };
    if (std::any_of(other.along.begin(), other.along.end(), adds)) continue;
    const MeshCase made = maker.make(of, 1e-7);
    const std::vector<Tensor> meant = maker.distributed(made.whole, other);
    bool same = true;
    for (size_t r = 0; r < meant.size() && same; ++r) {
      same = made.held[r].shape == meant[r].shape;
      for (size_t k = 0; k < meant[r].values.size() && same; ++k)
        same = std::fabs(made.held[r].values[k] - meant[r].values[k]) < 1e-4;
    }
    if (same || !is_uneven(made)) continue;
    ++all;
    const DeclaredState state = state_of(made, other, 1e-6);
    told += state == DeclaredState::otherwise;
    EXPECT_NE(state, DeclaredState::as_found)
        << shown(made, of) << " declared " << shown(made, other);
  }
  EXPECT_GT(told, all * 9 / 10);
}

TEST(UnevenDeclaration, OfFourRanks) {
  MeshMaker maker(7);
  Declaration rows = parse_declaration("Shard(0) over 4 ranks 0-3").value();
  MeshCase made{maker.tensor({103, 8}), {}, rows};
  made.held = maker.distributed(made.whole, rows);
  const MeshCase right = made;
  using enum DeclaredState;
  EXPECT_EQ(state_of(made, rows, 1e-6), as_found);
  EXPECT_EQ(state_of(made, parse_declaration("Replicate() over 4 ranks 0-3").value(), 1e-6),
            otherwise);
  EXPECT_EQ(state_of(made, parse_declaration("Shard(1) over 4 ranks 0-3").value(), 1e-6),
            otherwise);
  std::swap(made.held[0], made.held[1]);
  EXPECT_EQ(state_of(made, rows, 1e-6), otherwise);
  made = right;
  // The last begins a row too early: it is nobody's, and nothing else is known of it.
  made.held[3] = part_of(made.whole, 0, 77, 25);
  EXPECT_NE(state_of(made, rows, 1e-6), as_found);
}

// Megatron pads its vocabulary to equal parts.
TEST(UnevenDeclaration, OfWhatIsPadded) {
  MeshMaker maker(8);
  const Tensor whole = maker.tensor({103, 8});
  std::vector<RankValue> held;
  for (uint32_t r = 0; r < 4; ++r) {
    const int64_t size = r == 3 ? 25 : 26;
    Tensor part = part_of(whole, 0, 26 * r, size);
    if (r == 3) part = joined(part, {{1, 8}, std::vector<double>(8, 0)}, 0);
    held.push_back(part.held(r));
  }
  UnevenCuts known;
  known.add_padded(103, 26);
  PiecesWanted wanted;
  wanted.uneven = known.pieces({103, 8}, {26, 8}, 4, {});
  const WholeValue value{whole.shape, sketch_sets(whole.elements(), FloatType::float64, wanted)};
  const TensorPlacement found = find_placement(value, held, 1e-6);
  for (const auto& [text, state] :
       {std::pair{"Shard(0) over 4 ranks 0-3 as tensor_model_parallel, partition_dim 0",
                  DeclaredState::as_found},
        {"Shard(0) as tensor_model_parallel, partition_dim 0", DeclaredState::as_found},
        {"Shard(0) over 4 ranks 1,0,2,3 as tensor_model_parallel", DeclaredState::otherwise}}) {
    const std::vector<Declaration> declared(4, parse_declaration(text).value());
    EXPECT_EQ(check_declaration(value, held, declared, found, 1e-6), state) << text;
  }
}

TEST(DeclaredCut, IsThatOfChunk) {
  const auto of = [](int64_t whole, size_t rank, size_t ranks) {
    DeclaredCut cut(whole);
    cut.take(rank, ranks, 1);
    return cut.interval().value();
  };
  EXPECT_EQ(of(103, 3, 4), (DeclaredInterval{78, 25}));
  EXPECT_EQ(of(5, 2, 4), (DeclaredInterval{4, 1}));
  EXPECT_EQ(of(5, 3, 4).size, 0);
  // FSDP2 over tensor parallelism.
  DeclaredCut both(103);
  both.take(1, 2, 2);
  EXPECT_FALSE(both.interval());
  both.take(1, 2, 1);
  EXPECT_EQ(both.interval(), (DeclaredInterval{78, 25}));
}

}  // namespace
}  // namespace opguard
