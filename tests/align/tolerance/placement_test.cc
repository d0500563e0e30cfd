// What ranks hold is found from sketches: of values of random shapes, layouts, factors and noise
// none is told wrongly. Contents that look alike from every side are no finding.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "align/tolerance/placement.h"
#include "runtime/fingerprint/slices.h"
#include "sketched_tensor.h"

namespace opguard {
namespace {

// What ranks hold, and what is to be found.
struct Case {
  Tensor whole;
  std::vector<Tensor> ranks;
  PlacementKind kind = PlacementKind::replicated;
  double factor = 1;
  std::string text;
};

class Maker {
 public:
  explicit Maker(uint64_t seed) : random_(seed) {}

  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  double normal() { return normal_(random_); }

  Tensor tensor(Shape shape) {
    Tensor t{shape, {}};
    int64_t count = 1;
    for (int64_t n : shape) count *= n;
    const double scale = std::pow(10, below(7) - 3);
    for (int64_t i = 0; i < count; ++i) t.values.push_back(scale * normal());
    return t;
  }

  Case make() {
    const int64_t kinds = below(6);
    const int64_t world = 2 + 2 * below(2);
    Shape shape(static_cast<size_t>(1 + below(3)));
    for (int64_t& n : shape) n = 8 * (1 + below(3));
    const auto dim = static_cast<size_t>(below(static_cast<int64_t>(shape.size())));
    Case made{tensor(shape), {}, PlacementKind::replicated, 1, ""};
    if (kinds == 0) {
      made.ranks.assign(static_cast<size_t>(world), made.whole);
    } else if (kinds == 1) {
      made.kind = PlacementKind::sharded;
      for (int64_t r = 0; r < world; ++r)
        made.ranks.push_back(part_of(made.whole, dim, r * shape[dim] / world, shape[dim] / world));
    } else if (kinds == 2) {
      made.kind = PlacementKind::pieces;  // zigzag
      const int64_t piece = shape[dim] / (2 * world);
      for (int64_t r = 0; r < world; ++r)
        made.ranks.push_back(joined(part_of(made.whole, dim, r * piece, piece),
                                    part_of(made.whole, dim, (2 * world - 1 - r) * piece, piece),
                                    dim));
    } else if (kinds == 3) {
      made.kind = PlacementKind::partial;
      made.ranks = split(made.whole, world);
    } else if (kinds == 4) {
      made.kind = PlacementKind::partial_mean;
      made.ranks = split(made.whole, world);
      for (Tensor& t : made.ranks)
        for (double& x : t.values) x *= static_cast<double>(world);
    } else {
      // Cut in two, each half a sum over two ranks.
      made.kind = PlacementKind::partial;
      for (int64_t half = 0; half < 2; ++half)
        for (Tensor& t : split(part_of(made.whole, dim, half * shape[dim] / 2, shape[dim] / 2), 2))
          made.ranks.push_back(std::move(t));
    }
    if (kinds < 3 && below(2) == 0) {
      const double factors[] = {2, 0.5, 4, 1.0 / 3, 1.37};
      made.factor = factors[below(5)];
      for (Tensor& t : made.ranks)
        for (double& x : t.values) x *= made.factor;
    }
    for (int64_t n : shape) made.text += std::to_string(n) + " ";
    made.text += "kind " + std::to_string(kinds) + " dim " + std::to_string(dim) + " ranks " +
                 std::to_string(made.ranks.size()) + " factor " + std::to_string(made.factor);
    return made;
  }

  void add_noise(Case& made, double noise) {
    for (Tensor& t : made.ranks)
      for (double& x : t.values) x *= 1 + noise * normal();
  }

 private:
  std::vector<Tensor> split(const Tensor& whole, int64_t ranks) {
    std::vector<Tensor> parts;
    Tensor rest = whole;
    for (int64_t r = 0; r + 1 < ranks; ++r) {
      Tensor part = whole;
      for (size_t i = 0; i < part.values.size(); ++i) {
        part.values[i] = normal() * std::fabs(whole.values[i]);
        rest.values[i] -= part.values[i];
      }
      parts.push_back(part);
    }
    parts.push_back(rest);
    return parts;
  }

  std::mt19937_64 random_;
  std::normal_distribution<> normal_;
};

WholeValue whole_of(const Case& made) {
  std::vector<Shape> locals;
  if (cuts(made.whole.shape, made.ranks[0].shape, static_cast<int64_t>(made.ranks.size())))
    locals.push_back(made.ranks[0].shape);
  return {made.whole.shape, sketch_sets(made.whole.elements(), FloatType::float64, {locals})};
}

std::vector<RankValue> held_by(const Case& made) {
  std::vector<RankValue> held;
  for (uint32_t r = 0; r < made.ranks.size(); ++r) held.push_back(made.ranks[r].held(r));
  return held;
}

TEST(Placement, IsFoundAndNeverWrong) {
  Maker maker(2026);
  uint64_t ambiguous = 0, wrong = 0;
  constexpr int kCases = 10'000;
  const double noises[] = {0, 1e-7, 1e-3, 0.03};
  for (int i = 0; i < kCases; ++i) {
    const double noise = noises[i % 4];
    Case made = maker.make();
    maker.add_noise(made, noise);
    const double allowed = 4 * std::max(noise, 6e-8);
    const TensorPlacement found = find_placement(whole_of(made), held_by(made), allowed);
    if (found.ambiguous) {
      ++ambiguous;
      continue;
    }
    const bool right = found.kind == made.kind && found.omitted == 0 &&
                       std::fabs(found.factor - made.factor) < 8 * allowed * made.factor;
    if (right) continue;
    if (++wrong <= 10)
      ADD_FAILURE() << made.text << " noise " << noise << ": found " << static_cast<int>(found.kind)
                    << " factor " << found.factor << " error " << found.error << " omitted "
                    << found.omitted;
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT_LT(ambiguous, kCases / 100u);
}

// Zeros, ones, equal rows: several hypotheses fit. None may be called a difference.
TEST(Placement, WhatLooksAlikeFromEverySideIsNoFinding) {
  Maker maker(7);
  for (int i = 0; i < 3000; ++i) {
    Case made = maker.make();
    if (made.factor != 1 || made.kind == PlacementKind::partial ||
        made.kind == PlacementKind::partial_mean)
      continue;
    const int content = i % 3;
    const auto fill = [&](Tensor& t) {
      for (size_t k = 0; k < t.values.size(); ++k)
        t.values[k] = content == 0   ? 0
                      : content == 1 ? 1
                                     : std::sin(double(k % static_cast<size_t>(t.shape.back())));
    };
    fill(made.whole);
    for (Tensor& t : made.ranks) fill(t);
    // Rows are equal, but not their pieces.
    if (content == 2 && made.ranks[0].shape.back() != made.whole.shape.back()) continue;
    const TensorPlacement found = find_placement(whole_of(made), held_by(made), 1e-6);
    EXPECT_LE(found.error, 1e-6) << made.text << " content " << content;
    EXPECT_EQ(found.factor, 1) << made.text;
    EXPECT_TRUE(found.stray.empty());
  }
}

TEST(Placement, APieceThatNoRankHoldsIsOmitted) {
  Maker maker(3);
  Case made;
  made.whole = maker.tensor({8, 16});
  made.ranks.assign(2, part_of(made.whole, 0, 0, 4));
  const TensorPlacement found = find_placement(whole_of(made), held_by(made), 1e-6);
  EXPECT_EQ(found.kind, PlacementKind::sharded);
  EXPECT_EQ(found.omitted, 1u);
}

TEST(Placement, ARankThatDisagreesIsNamed) {
  Maker maker(4);
  Case made;
  made.whole = maker.tensor({8, 16});
  made.ranks.assign(3, made.whole);
  made.ranks[1].values[5] += 3;
  const TensorPlacement found = find_placement(whole_of(made), held_by(made), 1e-6);
  EXPECT_EQ(found.kind, PlacementKind::replicated);
  EXPECT_EQ(found.stray, (std::vector<uint32_t>{1}));
  EXPECT_TRUE(found.is_of_some(3));
  for (Tensor& rank : made.ranks) rank.values[5] += 2;
  EXPECT_EQ(find_placement(whole_of(made), held_by(made), 1e-6).kind, PlacementKind::unknown);
}

// Zeros beside the whole are parts of a sum, where there may be one.
TEST(Placement, AParameterIsNoPartOfASum) {
  Maker maker(8);
  Case made;
  made.whole = maker.tensor({48});
  made.ranks.assign(2, made.whole);
  std::fill(made.ranks[1].values.begin(), made.ranks[1].values.end(), 0);
  const WholeValue whole = whole_of(made);
  EXPECT_EQ(find_placement(whole, held_by(made), 1e-6).kind, PlacementKind::partial);
  const TensorPlacement found = find_placement(whole, held_by(made), 1e-6, 1, Sums::none);
  EXPECT_EQ(found.kind, PlacementKind::replicated);
  EXPECT_EQ(found.stray, (std::vector<uint32_t>{1}));
}

// With coarse rounding some factor is always a little nearer than one.
TEST(Placement, AFactorExplainsMostOfADifferenceOrNothing) {
  Maker maker(9);
  Case made;
  made.whole = maker.tensor({16, 64});
  made.ranks.assign(1, made.whole);
  maker.add_noise(made, 0.3);
  const TensorPlacement found = find_placement(whole_of(made), held_by(made), 0.1);
  EXPECT_EQ(found.kind, PlacementKind::unknown);
  EXPECT_EQ(found.factor, 1);
  made.ranks.assign(1, made.whole);
  for (double& value : made.ranks[0].values) value *= 1.37;
  EXPECT_NEAR(find_placement(whole_of(made), held_by(made), 0.1).factor, 1.37, 1e-6);
}

TEST(Placement, OfOtherShapesNothingIsKnown) {
  Maker maker(5);
  const Tensor whole = maker.tensor({9, 16}), other = maker.tensor({4, 16});
  const WholeValue value{whole.shape, sketch_sets(whole.elements(), FloatType::float64)};
  EXPECT_EQ(find_placement(value, {other.held(0)}, 1e-6).kind, PlacementKind::unknown);
  EXPECT_EQ(find_placement(value, {other.held(0), whole.held(1)}, 1e-6).kind,
            PlacementKind::unknown);
}

}  // namespace
}  // namespace opguard
