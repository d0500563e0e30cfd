// A mesh of 16 ranks: inner ranks one step apart, outer groups a longer step apart.
//
//   inner 4, step 1             0 1 2 3 | 4 5 6 7 | ...
//   inner 4, step 4             0 4 8 12 | 1 5 9 13 | ...
//   inner 2, step 1, outer 2,   0 1 8 9 | 2 3 10 11 | ...
//   far 8
//
// Groups are kept by what is in them: several pairs of steps may describe one. Where all of a group
// hold the same, no sum is kept.
//
// The cost: at most 2^n sums of up to 12 ranks.
#include "align/tolerance/rank_sums.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <set>

namespace opguard {
namespace {

// So many ranks of one shape have every subset tried.
constexpr size_t kMostSubsets = 12;

}  // namespace

HeldSums::HeldSums(const std::vector<RankValue>& held, const RankShapes& ranks, double allowed)
    : held_(held), allowed_(allowed), by_size_(held.size() + 1) {
  for (const RankValue& value : held) norms_.push_back(norm(value.sketch));
  std::vector<std::vector<uint32_t>> of_shape(ranks.shapes.size());
  for (uint32_t r = 0; r < held.size(); ++r)
    if (!ranks.is_empty(r)) of_shape[ranks.of_rank[r]].push_back(r);
  for (size_t shape = 0; shape < of_shape.size(); ++shape)
    if (held.size() <= kMostSubsets)
      add_subsets(of_shape[shape], shape);
    else
      add_groups(of_shape[shape], shape);
}

void HeldSums::add_subsets(const std::vector<uint32_t>& of_shape, size_t shape) {
  for (uint32_t bits = 1; bits < uint32_t{1} << of_shape.size(); ++bits) {
    const auto size = static_cast<size_t>(std::popcount(bits));
    if (size < 2 || of_shape.size() % size != 0) continue;
    std::vector<uint32_t> positions;
    for (size_t i = 0; i < of_shape.size(); ++i)
      if ((bits >> i & 1) != 0) positions.push_back(of_shape[i]);
    add(positions, shape);
  }
}

void HeldSums::add_groups(const std::vector<uint32_t>& of_shape, size_t shape) {
  const size_t all = of_shape.size();
  std::set<std::vector<uint32_t>> known;
  const auto offer = [&](size_t inner, size_t step, size_t outer, size_t far) {
    // Each group begins at a rank that no step leads back from.
    for (size_t first = 0; first < all; ++first) {
      if (first / step % inner != 0 || first / far % outer != 0) continue;
      std::vector<uint32_t> positions;
      for (size_t j = 0; j < outer; ++j)
        for (size_t i = 0; i < inner; ++i)
          positions.push_back(of_shape[first + i * step + j * far]);
      if (known.insert(positions).second) add(positions, shape);
    }
  };
  for (size_t inner = 2; inner <= all; ++inner)
    for (size_t step = 1; inner * step <= all; ++step) {
      if (all % (inner * step) != 0) continue;
      offer(inner, step, 1, all);
      for (size_t outer = 2; outer * inner * step <= all; ++outer)
        for (size_t far = inner * step * 2; far * outer <= all; far += inner * step)
          if (all % (far * outer) == 0) offer(inner, step, outer, far);
    }
}

void HeldSums::add(const std::vector<uint32_t>& positions, size_t shape) {
  if (alike(positions)) return;
  HeldSum& sum = by_size_[positions.size()].emplace_back(HeldSum{{}, shape, {}, 0});
  for (const uint32_t r : positions) {
    sum.ranks.set(r);
    sum.parts += norms_[r];
    for (size_t i = 0; i < kSketchNumbers; ++i) sum.sum[i] += held_[r].sketch[i];
  }
}

bool HeldSums::alike(const std::vector<uint32_t>& positions) const {
  const uint32_t first = positions[0];
  const double limit =
      norms_[first] == 0 ? std::numeric_limits<double>::infinity() : 2 * allowed_ * norms_[first];
  return std::all_of(positions.begin() + 1, positions.end(), [&](uint32_t r) {
    const double apart = distance_within(held_[r].sketch, held_[first].sketch, 1, limit);
    return apart == 0 || (norms_[first] != 0 && apart <= limit);
  });
}

}  // namespace opguard
