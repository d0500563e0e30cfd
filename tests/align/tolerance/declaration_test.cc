// What is declared beside what ranks hold. Of random shapes, meshes, placements and noise no right
// declaration is called otherwise, and no wrong one is called as found.
#include "align/tolerance/declaration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "align/tolerance/placement.h"
#include "runtime/fingerprint/slices.h"
#include "sketched_tensor.h"

namespace opguard {
namespace {

using enum DeclaredKind;

// Beside a mesh there are others, as of data parallelism, of which each has ...
enum class Beside { nothing, same, piece, piece_of_each, part_of_sum };

struct DeclaredCase {
  Tensor whole;
  std::vector<Tensor> held;  // by place, mesh after mesh
  std::vector<Declaration> declared;
};

class DeclaredMaker {
 public:
  explicit DeclaredMaker(uint64_t seed) : random_(seed) {}

  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

  Tensor tensor(Shape shape) {
    Tensor t{shape, {}};
    int64_t count = 1;
    for (int64_t n : shape) count *= n;
    for (int64_t i = 0; i < count; ++i) t.values.push_back(normal_(random_));
    return t;
  }

  // What ranks of a mesh hold, as torch's distribute_tensor() cuts: from the mesh's first dimension
  // on, each part for itself.
  std::vector<Tensor> distributed(const Tensor& t, const Declaration& of, size_t along = 0) {
    if (along == of.mesh.size()) return {t};
    const auto ranks = static_cast<int64_t>(of.mesh[along]);
    const DeclaredAlong& way = of.along[along];
    std::vector<Tensor> each;
    if (way.kind == replicate) {
      each.assign(static_cast<size_t>(ranks), t);
    } else if (way.kind == shard) {
      const auto dim = static_cast<size_t>(way.dim);
      const int64_t block = t.shape[dim] / way.split, piece = block / ranks;
      for (int64_t r = 0; r < ranks; ++r) {
        Tensor mine = part_of(t, dim, r * piece, piece);
        for (int64_t s = 1; s < way.split; ++s)
          mine = joined(mine, part_of(t, dim, s * block + r * piece, piece), dim);
        each.push_back(std::move(mine));
      }
    } else {
      each = summands(t, ranks);
      if (way.kind == partial_mean)
        for (Tensor& part : each)
          for (double& x : part.values) x *= static_cast<double>(ranks);
    }
    std::vector<Tensor> all;
    for (const Tensor& part : each)
      for (Tensor& mine : distributed(part, of, along + 1)) all.push_back(std::move(mine));
    return all;
  }

  std::vector<Tensor> summands(const Tensor& t, int64_t count) {
    std::vector<Tensor> parts;
    Tensor rest = t;
    for (int64_t i = 1; i < count; ++i) {
      parts.push_back(tensor(t.shape));
      for (size_t k = 0; k < t.values.size(); ++k) rest.values[k] -= parts.back().values[k];
    }
    parts.push_back(std::move(rest));
    return parts;
  }

  Declaration declaration() {
    Declaration of;
    int64_t size = 1;
    for (int64_t m = 0, dims = 1 + below(2); m < dims; ++m) {
      int64_t ranks = 1 + below(4);
      while (size * ranks > 8) --ranks;
      size *= ranks;
      of.mesh.push_back(static_cast<uint32_t>(ranks));
      const DeclaredKind kinds[] = {replicate, shard, shard, partial, partial_mean};
      of.along.push_back({kinds[below(5)], static_cast<int32_t>(below(2))});
    }
    // FSDP2 over tensor parallelism: the later dimension of the mesh cuts first.
    if (of.along.size() == 2 && of.along[0].kind == shard && of.along[0] == of.along[1] &&
        below(2) == 0)
      of.along[0].split = of.mesh[1];
    for (uint32_t rank = 0; rank < size; ++rank) of.ranks.push_back(rank);
    return of;
  }

  DeclaredCase make(const Declaration& of, Beside beside, double noise) {
    DeclaredCase made{tensor({48, 48, 1 + below(3)}), {}, {}};
    std::vector<Tensor> of_mesh{made.whole};
    if (beside == Beside::same || beside == Beside::piece_of_each) of_mesh.push_back(made.whole);
    const auto dim = static_cast<size_t>(below(2));
    if (beside == Beside::piece)
      of_mesh = {part_of(made.whole, dim, 0, 24), part_of(made.whole, dim, 24, 24)};
    if (beside == Beside::part_of_sum) of_mesh = summands(made.whole, 2);
    const auto size = static_cast<uint32_t>(of.ranks.size());
    for (uint32_t mesh = 0; mesh < of_mesh.size(); ++mesh) {
      Declaration mine = of;
      for (uint32_t& rank : mine.ranks) rank += mesh * size;
      for (Tensor& t : distributed(of_mesh[mesh], of)) {
        if (beside == Beside::piece_of_each) {
          const int64_t half = t.shape[dim] / 2;
          t = part_of(t, dim, mesh * half, half);
        }
        const double scale = std::sqrt(square(t) / static_cast<double>(t.values.size()));
        for (double& x : t.values) x += noise * scale * normal_(random_);
        made.held.push_back(std::move(t));
        made.declared.push_back(mine);
      }
    }
    return made;
  }

  static double square(const Tensor& t) {
    double sum = 0;
    for (const double x : t.values) sum += x * x;
    return sum;
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<> normal_;
};

std::vector<RankValue> values_of(const DeclaredCase& made) {
  std::vector<RankValue> held;
  for (uint32_t r = 0; r < made.held.size(); ++r) held.push_back(made.held[r].held(r));
  return held;
}

WholeValue reference_of(const DeclaredCase& made) {
  const Shape& local = made.held.front().shape;
  std::vector<Shape> locals;
  if (local != made.whole.shape) locals.push_back(local);
  return {made.whole.shape, sketch_sets(made.whole.elements(), FloatType::float64, {locals})};
}

DeclaredState checked(const DeclaredCase& made, double allowed) {
  const WholeValue whole = reference_of(made);
  const std::vector<RankValue> held = values_of(made);
  return check_declaration(whole, held, made.declared, find_placement(whole, held, allowed),
                           allowed);
}

std::string shown_case(const Declaration& of, Beside beside) {
  std::string text = "beside " + std::to_string(static_cast<int>(beside));
  for (size_t m = 0; m < of.mesh.size(); ++m)
    text += "; " + std::to_string(static_cast<int>(of.along[m].kind)) + " of dimension " +
            std::to_string(of.along[m].dim) + " split " + std::to_string(of.along[m].split) +
            " over " + std::to_string(of.mesh[m]);
  return text;
}

TEST(Declaration, NoRightOneIsCalledWrong) {
  DeclaredMaker maker(2026);
  constexpr int kCases = 2000;
  const double noises[] = {0, 1e-7, 1e-3, 0.03};
  int untold = 0, wrong = 0;
  for (int i = 0; i < kCases; ++i) {
    const Declaration of = maker.declaration();
    const auto beside = static_cast<Beside>(maker.below(5));
    const double noise = noises[i % 4];
    const DeclaredCase made = maker.make(of, beside, noise);
    const DeclaredState state = checked(made, 4 * std::max(noise, 6e-8));
    untold += state == DeclaredState::untold;
    if (state == DeclaredState::otherwise && ++wrong <= 10)
      ADD_FAILURE() << shown_case(of, beside) << " noise " << noise;
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_LT(untold, kCases / 50);
}

// Twice as large, and of equal rows, ones and zeros: laid out as declared.
TEST(Declaration, AFactorIsNoLayout) {
  DeclaredMaker maker(5);
  for (int i = 0; i < 1000; ++i) {
    const Declaration of = maker.declaration();
    DeclaredCase made = maker.make(of, Beside::nothing, 0);
    for (Tensor& t : made.held)
      for (double& x : t.values) x *= i % 2 == 0 ? 2 : 1.7;
    EXPECT_NE(checked(made, 1e-6), DeclaredState::otherwise) << shown_case(of, Beside::nothing);
  }
}

TEST(Declaration, WhatLooksAlikeFromEverySideIsNoFinding) {
  DeclaredMaker maker(6);
  for (int i = 0; i < 1500; ++i) {
    const Declaration of = maker.declaration();
    DeclaredCase made = maker.make(of, Beside::nothing, 0);
    const auto fill = [&](Tensor& t) {
      for (size_t k = 0; k < t.values.size(); ++k)
        t.values[k] = i % 3 == 0   ? 0
                      : i % 3 == 1 ? 1
                                   : std::sin(double(k % static_cast<size_t>(t.shape[2])));
    };
    fill(made.whole);
    made.held = maker.distributed(made.whole, of);
    EXPECT_NE(checked(made, 1e-6), DeclaredState::otherwise) << shown_case(of, Beside::nothing);
  }
}

TEST(Declaration, NoWrongOneIsCalledRight) {
  DeclaredMaker maker(11);
  int told = 0, all = 0;
  for (int i = 0; i < 4000; ++i) {
    const Declaration of = maker.declaration(), other = maker.declaration();
    const bool adds = std::any_of(other.along.begin(), other.along.end(), [](const auto& along) {
      return along.kind == partial || along.kind == partial_mean;
    });
    if (adds || other.ranks.size() != of.ranks.size()) continue;
    DeclaredCase made = maker.make(of, Beside::nothing, 1e-7);
    // Another cut of the same pieces is the same declaration.
    const DeclaredCase meant{made.whole, maker.distributed(made.whole, other), {}};
    bool same = true;
    for (size_t r = 0; r < made.held.size() && same; ++r) {
      same = made.held[r].shape == meant.held[r].shape;
      for (size_t k = 0; k < made.held[r].values.size() && same; ++k)
        same = std::fabs(made.held[r].values[k] - meant.held[r].values[k]) < 1e-4;
    }
    if (same) continue;
    ++all;
    made.declared.assign(made.held.size(), other);
    const DeclaredState state = checked(made, 1e-6);
    told += state == DeclaredState::otherwise;
    EXPECT_NE(state, DeclaredState::as_found)
        << shown_case(of, Beside::nothing) << " declared " << shown_case(other, Beside::nothing);
  }
  EXPECT_GT(all, 150);
  EXPECT_GT(told, all * 9 / 10);
}

DeclaredCase two_ranks(const Tensor& whole, std::vector<Tensor> held, const char* declared) {
  DeclaredCase made{whole, std::move(held), {}};
  made.declared.assign(made.held.size(), parse_declaration(declared).value());
  return made;
}

TEST(Declaration, OfTwoRanks) {
  DeclaredMaker maker(1);
  const Tensor whole = maker.tensor({16, 16}), other = maker.tensor({16, 16});
  const std::vector<Tensor> parts = maker.summands(whole, 2);
  const Tensor upper = part_of(whole, 0, 0, 8), lower = part_of(whole, 0, 8, 8),
               left = part_of(whole, 1, 0, 8), right = part_of(whole, 1, 8, 8);
  std::vector<Tensor> zigzag{joined(part_of(whole, 0, 0, 4), part_of(whole, 0, 12, 4), 0),
                             part_of(whole, 0, 4, 8)};
  const auto state = [&](std::vector<Tensor> held, const char* declared) {
    return checked(two_ranks(whole, std::move(held), declared), 1e-6);
  };
  using enum DeclaredState;
  const char *replicated = "Replicate() over 2 ranks 0-1", *rows = "Shard(0) over 2 ranks 0-1",
             *sum = "Partial(sum) over 2 ranks 0-1", *mean = "Partial(avg) over 2 ranks 0-1";
  EXPECT_EQ(state({whole, whole}, replicated), as_found);
  EXPECT_EQ(state(parts, replicated), otherwise);
  EXPECT_EQ(state(parts, sum), as_found);
  EXPECT_EQ(state({whole, whole}, sum), otherwise);
  EXPECT_EQ(state({whole, whole}, mean), as_found);
  EXPECT_EQ(state({whole, whole}, rows), otherwise);
  EXPECT_EQ(state({upper, lower}, rows), as_found);
  EXPECT_EQ(state({upper, lower}, "Shard(-2) over 2 ranks 0-1"), as_found);
  EXPECT_EQ(state({lower, upper}, rows), otherwise);
  EXPECT_EQ(state({lower, upper}, "Shard(0) over 2 ranks 1,0"), as_found);
  EXPECT_EQ(state({upper, upper}, rows), otherwise);
  EXPECT_EQ(state({left, right}, rows), otherwise);
  EXPECT_EQ(state({upper, lower}, replicated), otherwise);
  // Gate and projection of a weight, or zigzag context parallelism.
  EXPECT_EQ(state(zigzag, rows), as_found);
  EXPECT_EQ(state(zigzag, replicated), otherwise);
  EXPECT_EQ(state(zigzag, "Shard(1) over 2 ranks 0-1"), otherwise);
  // Of nobody's value only that is told, in which the ranks contradict each other.
  EXPECT_EQ(state({other, other}, replicated), untold);
  EXPECT_EQ(state({other, whole}, replicated), otherwise);
  EXPECT_EQ(state({other, whole}, sum), untold);
  // A rank of the mesh is missing, or the kind is none of sums and pieces.
  EXPECT_EQ(state(parts, "Replicate() over 3 ranks 0-2"), untold);
  EXPECT_EQ(state(parts, "Partial(max) over 2 ranks 0-1"), untold);
  EXPECT_EQ(state(parts, "_MaskPartial() over 2 ranks 0-1"), untold);
  // Nobody says over which ranks.
  EXPECT_EQ(state({upper, lower}, "Shard(0) as tensor_model_parallel, partition_dim 0"), as_found);
  EXPECT_EQ(state({left, right}, "Shard(0) as tensor_model_parallel, partition_dim 0"), otherwise);
  EXPECT_EQ(state({whole, whole}, "Shard(0) as tensor_model_parallel, partition_dim 0"), untold);
  EXPECT_EQ(state({whole, whole}, "Replicate() as sequence_parallel"), as_found);
  EXPECT_EQ(state(parts, "Replicate() as sequence_parallel"), otherwise);
  EXPECT_EQ(state({upper, lower}, "Replicate() as sequence_parallel"), untold);
}

TEST(Declaration, IsReadAsItIsWritten) {
  const auto read = parse_declaration("_StridedShard(0, 2), Shard(0) over 2x2 ranks 0,2-3,1");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->along, (std::vector<DeclaredAlong>{{shard, 0, 2}, {shard, 0}}));
  EXPECT_EQ(read->mesh, (std::vector<uint32_t>{2, 2}));
  EXPECT_EQ(read->ranks, (std::vector<uint32_t>{0, 2, 3, 1}));
  EXPECT_EQ(read->text, "_StridedShard(0, 2), Shard(0) over ranks 0,2-3,1");
  EXPECT_FALSE(read->by_attributes);
  const auto attributes = parse_declaration("Replicate() over 2 ranks 0-1 as sequence_parallel");
  ASSERT_TRUE(attributes);
  EXPECT_EQ(attributes->text, "sequence_parallel over ranks 0-1");
  EXPECT_TRUE(attributes->by_attributes);
  EXPECT_EQ(parse_declaration("Other(3) over 1 ranks 0")->along.front().kind, DeclaredKind::other);
}

TEST(Declaration, WhatIsNoneIsNotRead) {
  for (const char* text :
       {"", "Shard", "Shard(0", "Shard()", "Shard(x) over 2 ranks 0-1", "Shard(0) over ",
        "Shard(0) over 2", "Shard(0) over 2 ranks", "Shard(0) over 2 ranks 0",
        "Shard(0) over 2 ranks 1-0", "Shard(0) over 2x2 ranks 0-3", "Shard(0) over 0 ranks ",
        "Shard(0) over 2 ranks 0-1 and", "Shard(0), over 2 ranks 0-1",
        "_StridedShard(0) over 2 ranks 0-1", "Replicate() over 4294967295x4294967295 ranks 0-1",
        "Replicate() over 2 ranks 0-4294967295"})
    EXPECT_FALSE(parse_declaration(text)) << text;
}

}  // namespace
}  // namespace opguard
