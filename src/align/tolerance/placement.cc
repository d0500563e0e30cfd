// What is tried, in this order, until something is within what is allowed:
//
//   1. each rank alone: the tensor, a piece, two pieces
//   2. sums and means over groups of ranks, beside what 1 tries
//   3. both again, at 2, 1/2, 4, 1/4, 8, 1/8, 3 and 1/3 times the reference
//   4. each rank alone, at a factor that is fitted to the first rank with something
//
// Within 1 and 2 the best hypothesis is taken, and the runner-up decides whether the answer is
// ambiguous. Of 3 the first factor that fits is.
//
// Any value has some factor at which it is a little nearer. So a fitted one is a multiple only if
// it explains half of the difference.
#include "align/tolerance/placement.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

#include "align/tolerance/held_targets.h"
#include "align/tolerance/rank_sums.h"

namespace opguard {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// A fitted factor explains what is a multiple within so many times what is allowed.
constexpr double kFitAllowance = 4;
// It explains nothing that leaves more than this part of the difference.
constexpr double kLeftByFactor = 0.5;
// Another hypothesis that leaves less than so many times the difference fits as well.
constexpr double kClear = 4;

// Relative to the target; of a target of zeros only zeros are at no distance.
double relative(double distance, double of) {
  return distance == 0 ? 0 : of == 0 ? kNever : distance / of;
}

// Relative to `of`, where that is at most `limit`; else something above.
double relative_within(const SketchSums& y, const SketchSums& z, double factor, double of,
                       double limit) {
  return relative(distance_within(y, z, factor, of == 0 ? kNever : limit * of), of);
}

// Which hypotheses are told apart: all, or those alone that fit.
enum class Hypotheses : uint8_t { nearest, fitting };

// Of one that is padded what lies behind its end may be anything.
double distance_to(const Target& target, const RankValue& value, double factor, double limit) {
  const double of = std::fabs(factor) * target.norm;
  double nearest = relative_within(value.sketch, target.sketch, factor, of, limit);
  if (!target.padded || target.first == kNoPiece) return nearest;
  for (const SketchSums& unpadded : value.unpadded)
    nearest = std::min(nearest, relative_within(unpadded, target.sketch, factor, of, limit));
  return nearest;
}

// Each rank has what is nearest to it. Fitting: of one that a rank does not fit, only that is told.
TensorPlacement each_alone(const Targets& targets, const std::vector<RankValue>& held,
                           const RankShapes& ranks, double allowed, double factor,
                           Hypotheses search) {
  TensorPlacement found{targets.kind, targets.dims};
  found.error = 0;
  found.set = targets.set;
  std::vector<bool> covered(targets.pieces, false);
  bool of_grid = targets.kind == PlacementKind::pieces;
  const auto cover = [&](const Target& target) {
    if (target.first != kNoPiece) covered[target.first] = covered[target.second] = true;
  };
  for (size_t r = 0; r < held.size(); ++r) {
    const RankValue& value = held[r];
    double nearest = kNever;
    const Target* best = nullptr;
    for (const Target& target : targets.of_shape[ranks.of_rank[r]]) {
      const double error = distance_to(
          target, value, factor, std::max(search == Hypotheses::nearest ? nearest : 0, allowed));
      // A piece that a rank may hold as well is not called omitted.
      if (error <= allowed) cover(target);
      if (error < nearest || best == nullptr) {
        nearest = error;
        best = &target;
      }
    }
    if (nearest > allowed && search == Hypotheses::fitting) {
      found.error = kNever;
      return found;
    }
    if (best != nullptr) cover(*best);
    found.held.push_back(best != nullptr ? HeldPieces{best->first, best->second} : HeldPieces{});
    of_grid &= best != nullptr && best->of_grid;
    if (nearest > allowed) found.stray.push_back(value.rank);
    found.error = std::max(found.error, nearest);
  }
  found.omitted = targets.omitted(covered);
  // That is what `sharded` says.
  if (of_grid) found.error = kNever;
  return found;
}

// A sum, as near to a target as any.
struct NearSum {
  const HeldSum* sum = nullptr;
  const Target* target = nullptr;
  double error = kNever;
};

// A rank without elements, or one of zeros behind the end of what is padded.
bool has_nothing(const Targets& targets, size_t shape, const RankValue& value) {
  const std::vector<Target>& all = targets.of_shape[shape];
  return std::any_of(all.begin(), all.end(), [](const Target& t) { return t.first == kNoPiece; }) &&
         norm(value.sketch) == 0;
}

// The ranks fall into groups of one size, whose sums (or means) are the targets, each target as
// often as any other.
TensorPlacement in_groups(const Targets& targets, const HeldSums& held_sums,
                          const std::vector<RankValue>& held, const RankShapes& ranks, size_t size,
                          bool mean, double allowed, double factor) {
  TensorPlacement found{mean ? PlacementKind::partial_mean : PlacementKind::partial, targets.dims};
  const double scale = factor * (mean ? static_cast<double>(size) : 1);
  std::vector<NearSum> sums;
  for (const HeldSum& sum : held_sums.of(size)) {
    NearSum best{&sum};
    for (const Target& target : targets.of_shape[sum.shape]) {
      const double of = std::fabs(scale) * target.norm;
      const double error =
          relative_within(sum.sum, target.sketch, scale, std::max(of, sum.parts), allowed);
      if (error < best.error) best = {&sum, &target, error};
    }
    if (best.error <= allowed) sums.push_back(best);
  }
  std::sort(sums.begin(), sums.end(),
            [](const NearSum& a, const NearSum& b) { return a.error < b.error; });
  const size_t all = ranks.of_rank.size();
  RankSet taken;
  bool of_grid = targets.kind == PlacementKind::pieces;
  std::vector<bool> covered(targets.pieces, false);
  found.error = 0;
  found.set = targets.set;
  found.held.resize(all);
  for (size_t r = 0; r < all; ++r)
    if (has_nothing(targets, ranks.of_rank[r], held[r])) {
      taken.set(r);
      found.held[r] = {kNoPiece, kNoPiece};
    }
  for (const NearSum& near : sums) {
    const RankSet& of = near.sum->ranks;
    if ((taken & of).any()) continue;
    taken |= of;
    const Target& target = *near.target;
    for (size_t r = 0; r < all; ++r)
      if (of[r]) found.held[r] = {target.first, target.second};
    if (target.first != kNoPiece) covered[target.first] = covered[target.second] = true;
    of_grid &= target.of_grid;
    found.error = std::max(found.error, near.error);
  }
  found.omitted = targets.omitted(covered);
  if (taken.count() != all || found.omitted > 0 || of_grid) found.error = kNever;
  return found;
}

// The factors by which a rank's value may be a multiple of what it may hold, in units. It is the
// first rank that has something.
std::vector<double> fitted(const Targets& targets, const std::vector<RankValue>& held,
                           const RankShapes& ranks, double allowed, double unit) {
  std::vector<double> factors;
  size_t first = 0;
  while (first + 1 < held.size() && norm(held[first].sketch) == 0) ++first;
  for (const Target& target : targets.of_shape[ranks.of_rank[first]]) {
    double product = 0;
    for (size_t i = 0; i < kSketchNumbers; ++i) product += held[first].sketch[i] * target.sketch[i];
    const double square = target.norm * target.norm;
    const double factor = square > 0 ? product / square : 0;
    // Below this, what is left is no multiple but nothing. One that this rank does not fit is none.
    if (std::fabs(factor / unit) > 1e-3 &&
        distance_to(target, held[first], factor, allowed) <= allowed)
      factors.push_back(factor / unit);
  }
  return factors;
}

// Covered pieces come before small differences: a rank that holds another's piece is a finding.
bool better(const TensorPlacement& a, const TensorPlacement& b, double allowed) {
  const bool a_fits = a.error <= allowed, b_fits = b.error <= allowed;
  if (a_fits != b_fits) return a_fits;
  if (a_fits && a.omitted != b.omitted && (a.omitted == 0 || b.omitted == 0)) return a.omitted == 0;
  return a.error < b.error;
}

// The best of all hypotheses with one factor. sums: nullptr where none are tried.
TensorPlacement best_with(const std::vector<Targets>& hypotheses,
                          const std::vector<RankValue>& held, const RankShapes& ranks,
                          double allowed, double factor, Hypotheses search, const HeldSums* sums) {
  TensorPlacement best;
  const auto offer = [&](const TensorPlacement& other) {
    if (better(other, best, allowed)) {
      const double error = best.error;
      best = other;
      best.other_error = std::min(best.other_error, error);
    } else {
      best.other_error = std::min(best.other_error, other.error);
    }
  };
  for (const Targets& targets : hypotheses) {
    offer(each_alone(targets, held, ranks, allowed, factor, search));
    if (sums == nullptr) continue;
    for (size_t size = 2; size <= held.size(); ++size) {
      if (sums->of(size).empty()) continue;
      for (const bool mean : {false, true}) {
        // A mean of equal values is each of them.
        const TensorPlacement found =
            in_groups(targets, *sums, held, ranks, size, mean, allowed, factor);
        if (found.error < kNever) offer(found);
      }
    }
  }
  best.factor = 1;
  return best;
}

}  // namespace

double nearest_piece(const WholeValue& whole, const RankValue& held) {
  double nearest = kNever;
  for (const Targets& targets : placement_hypotheses(whole, RankShapes({held})))
    for (const Target& target : targets.of_shape[0])
      nearest = std::min(nearest, relative(distance(held.sketch, target.sketch), target.norm));
  return nearest;
}

TensorPlacement find_placement(const WholeValue& whole, const std::vector<RankValue>& held,
                               double allowed, double unit, Sums tried) {
  const RankShapes ranks(held);
  const std::vector<Targets> all = placement_hypotheses(whole, ranks);
  if (all.empty()) return {};
  const bool zero = norm(whole.sets[0].sketches[0].sums) == 0;
  // Sums over ranks only where no rank alone explains what it has: a mean of equal values is each.
  TensorPlacement best = best_with(all, held, ranks, allowed, unit, Hypotheses::nearest, nullptr);
  std::optional<HeldSums> of_ranks;
  if (tried == Sums::tried && best.error > allowed && held.size() > 1 &&
      held.size() <= kMostRanksSummed)
    of_ranks.emplace(held, ranks, allowed);
  const HeldSums* sums = of_ranks ? &*of_ranks : nullptr;
  if (sums != nullptr && !zero)
    best = best_with(all, held, ranks, allowed, unit, Hypotheses::nearest, sums);
  if (best.error <= allowed) {
    best.ambiguous = zero || best.other_error <= std::min(allowed, kClear * best.error);
    return best;
  }
  for (const double factor : {2.0, 0.5, 4.0, 0.25, 8.0, 0.125, 3.0, 1.0 / 3}) {
    TensorPlacement scaled =
        best_with(all, held, ranks, allowed, unit * factor, Hypotheses::fitting, sums);
    if (scaled.error > allowed) continue;
    scaled.factor = factor;
    scaled.ambiguous = scaled.other_error <= std::min(allowed, kClear * scaled.error);
    return scaled;
  }
  TensorPlacement multiple;
  for (const Targets& targets : all)
    for (const double factor : fitted(targets, held, ranks, kFitAllowance * allowed, unit)) {
      TensorPlacement scaled = each_alone(targets, held, ranks, kFitAllowance * allowed,
                                          unit * factor, Hypotheses::fitting);
      scaled.factor = factor;
      if (better(scaled, multiple, kFitAllowance * allowed)) multiple = scaled;
    }
  if (multiple.error <= std::min(kFitAllowance * allowed, kLeftByFactor * best.error))
    return multiple;
  if (!best.is_of_some(held.size())) best.kind = PlacementKind::unknown;
  return best;
}

}  // namespace opguard
