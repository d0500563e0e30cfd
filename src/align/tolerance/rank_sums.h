// align/tolerance/rank_sums.h: sums of what some of the ranks hold, which may be a tensor or its
// pieces.
//
//   up to 12 ranks     every subset of a size that divides the ranks
//   more               the groups of a mesh: ranks that are one step apart, as 0-7, 8-15, ... or 0,
//                      8, 16, ...; and of two dimensions of a mesh, as 0, 1, 8, 9, ...
//
// Only ranks that hold the same shape are added up.
//
// Counterexample: ranks that all hold the same are no sum. What they add up to is a multiple.
// The cost: of n ranks in a mesh about n log n sums for each size of a group.
#pragma once

#include <bitset>
#include <cstdint>
#include <vector>

#include "align/tolerance/held_targets.h"

namespace opguard {

// Beyond them no sum is tried.
inline constexpr size_t kMostRanksSummed = 1024;
using RankSet = std::bitset<kMostRanksSummed>;  // by the order of the values

// What some of the ranks hold, added up.
struct HeldSum {
  RankSet ranks{};
  size_t shape = 0;  // of RankShapes::shapes
  SketchSums sum{};
  double parts = 0;  // norms of the summands, which may be larger than that of their sum
};

// The sums that may be tried, by how many ranks are in each. They are the same whatever they are
// compared with.
class HeldSums {
 public:
  HeldSums(const std::vector<RankValue>& held, const RankShapes& ranks, double allowed);

  const std::vector<HeldSum>& of(size_t size) const { return by_size_[size]; }

 private:
  // positions: of those that are added up.
  void add(const std::vector<uint32_t>& positions, size_t shape);
  void add_subsets(const std::vector<uint32_t>& of_shape, size_t shape);
  void add_groups(const std::vector<uint32_t>& of_shape, size_t shape);
  // Do they all hold the same?
  bool alike(const std::vector<uint32_t>& positions) const;

  const std::vector<RankValue>& held_;
  const double allowed_;
  std::vector<double> norms_;
  std::vector<std::vector<HeldSum>> by_size_;
};

}  // namespace opguard
