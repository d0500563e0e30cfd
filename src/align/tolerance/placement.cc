#include "align/tolerance/placement.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <optional>

namespace opguard {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// A fitted factor explains what is a multiple within so many times what is allowed.
constexpr double kFitAllowance = 4;
// It explains nothing that leaves more than this part of the difference.
constexpr double kLeftByFactor = 0.5;
// Another hypothesis that leaves less than so many times the difference fits as well.
constexpr double kClear = 4;
constexpr size_t kMostSummed = 16;

// What a rank may hold: a piece of the reference, or two.
struct Target {
  SketchSums sketch{};
  double norm = 0;
  uint32_t first = 0, second = 0;  // numbers of the pieces in it; equal if it is one
  // Two pieces that are a piece of the grid: a rank in the middle of a zigzag has such.
  bool of_grid = false;
};

// All that ranks may hold under one hypothesis.
struct Targets {
  PlacementKind kind = PlacementKind::replicated;
  std::vector<uint8_t> dims{};
  std::vector<Target> all{};
  uint32_t pieces = 1;  // that make up the whole
  size_t set = 0;       // of WholeValue::sets
};

Target target_of(const SketchSums& sketch, uint32_t first, uint32_t second) {
  return {sketch, norm(sketch), first, second};
}

std::vector<uint8_t> cut_dims(const std::vector<int64_t>& whole,
                              const std::vector<int64_t>& local) {
  std::vector<uint8_t> dims;
  for (size_t d = 0; d < whole.size(); ++d)
    if (whole[d] != local[d]) dims.push_back(static_cast<uint8_t>(d));
  return dims;
}

Targets of_grid(const SketchSet& set, const std::vector<int64_t>& whole) {
  Targets targets{PlacementKind::sharded, cut_dims(whole, set.local)};
  targets.pieces = static_cast<uint32_t>(set.sketches.size());
  for (uint32_t i = 0; i < targets.pieces; ++i)
    targets.all.push_back(target_of(set.sketches[i].sums, i, i));
  return targets;
}

// For each cell of the other dimensions, every ordered pair of two pieces along set.dim.
Targets of_halves(const SketchSet& set, const std::vector<int64_t>& whole) {
  Targets targets{PlacementKind::pieces, cut_dims(whole, set.local)};
  const auto along = static_cast<size_t>(whole[set.dim] / set.local[set.dim] * 2);
  const size_t cells = set.sketches.size() / (2 * along);
  targets.pieces = static_cast<uint32_t>(cells * along);
  for (size_t cell = 0; cell < cells; ++cell)
    for (size_t a = 0; a < along; ++a)
      for (size_t b = 0; b < along; ++b) {
        if (a == b) continue;
        const SketchSums& first = set.sketches[2 * (cell * along + a)].sums;
        const SketchSums& second = set.sketches[2 * (cell * along + b) + 1].sums;
        SketchSums sum = first;
        for (size_t i = 0; i < kSketchNumbers; ++i) sum[i] += second[i];
        targets.all.push_back(target_of(sum, static_cast<uint32_t>(cell * along + a),
                                        static_cast<uint32_t>(cell * along + b)));
        targets.all.back().of_grid = a % 2 == 0 && b == a + 1;
      }
  return targets;
}

std::vector<Targets> hypotheses(const WholeValue& whole, const std::vector<int64_t>& local) {
  std::vector<Targets> all;
  if (local == whole.shape) {
    all.push_back(
        {PlacementKind::replicated, {}, {target_of(whole.sets[0].sketches[0].sums, 0, 0)}});
    return all;
  }
  for (const SketchSet& set : whole.sets) {
    if (set.local != local) continue;
    if (set.kind == SketchSetKind::grid)
      all.push_back(of_grid(set, whole.shape));
    else if (set.kind == SketchSetKind::halves)
      all.push_back(of_halves(set, whole.shape));
    else
      continue;
    all.back().set = static_cast<size_t>(&set - whole.sets.data());
  }
  return all;
}

// Relative to the target; of a target of zeros only zeros are at no distance.
double relative(double distance, double of) {
  return distance == 0 ? 0 : of == 0 ? kNever : distance / of;
}

uint32_t omitted_by(const std::vector<bool>& covered) {
  return static_cast<uint32_t>(std::count(covered.begin(), covered.end(), false));
}

// Relative to `of`, where that is at most `limit`; else something above.
double relative_within(const SketchSums& y, const SketchSums& z, double factor, double of,
                       double limit) {
  return relative(distance_within(y, z, factor, of == 0 ? kNever : limit * of), of);
}

// Which hypotheses are told apart: all, or those alone that fit.
enum class Hypotheses : uint8_t { nearest, fitting };

// Each rank has what is nearest to it. Fitting: of one that a rank does not fit, only that is told.
TensorPlacement each_alone(const Targets& targets, const std::vector<RankValue>& held,
                           double allowed, double factor, Hypotheses search) {
  TensorPlacement found{targets.kind, targets.dims};
  found.error = 0;
  found.set = targets.set;
  std::vector<bool> covered(targets.pieces, false);
  bool of_grid = targets.kind == PlacementKind::pieces;
  for (const RankValue& value : held) {
    double nearest = kNever;
    const Target* best = nullptr;
    for (const Target& target : targets.all) {
      const double error =
          relative_within(value.sketch, target.sketch, factor, std::fabs(factor) * target.norm,
                          std::max(search == Hypotheses::nearest ? nearest : 0, allowed));
      // A piece that a rank may hold as well is not called omitted.
      if (error <= allowed) covered[target.first] = covered[target.second] = true;
      if (error < nearest || best == nullptr) {
        nearest = error;
        best = &target;
      }
    }
    if (nearest > allowed && search == Hypotheses::fitting) {
      found.error = kNever;
      return found;
    }
    if (best != nullptr) covered[best->first] = covered[best->second] = true;
    found.held.push_back(best != nullptr ? HeldPieces{best->first, best->second} : HeldPieces{});
    of_grid &= best != nullptr && best->of_grid;
    if (nearest > allowed) found.stray.push_back(value.rank);
    found.error = std::max(found.error, nearest);
  }
  found.omitted = omitted_by(covered);
  // That is what `sharded` says.
  if (of_grid) found.error = kNever;
  return found;
}

// What some of the ranks hold, added up.
struct HeldSum {
  uint32_t ranks = 0;  // bits
  SketchSums sum{};
  double parts = 0;  // norms of the summands, which may be larger than that of their sum
};

// Do they all hold the same? Then their sum is a multiple, and says nothing of sums.
bool alike(const std::vector<RankValue>& held, const std::vector<double>& norms, uint32_t ranks,
           double allowed) {
  const auto first = static_cast<size_t>(std::countr_zero(ranks));
  for (size_t r = first + 1; r < held.size(); ++r)
    if ((ranks >> r & 1) != 0 && relative_within(held[r].sketch, held[first].sketch, 1,
                                                 norms[first], 2 * allowed) > 2 * allowed)
      return false;
  return true;
}

// The sums that may be tried, by how many ranks are in each: of a size that divides the ranks into
// groups. They are the same whatever they are compared with.
class HeldSums {
 public:
  HeldSums(const std::vector<RankValue>& held, double allowed) : by_size_(held.size() + 1) {
    std::vector<double> norms;
    for (const RankValue& value : held) norms.push_back(norm(value.sketch));
    for (uint32_t ranks = 1; ranks < uint32_t{1} << held.size(); ++ranks) {
      const auto size = static_cast<size_t>(std::popcount(ranks));
      if (size < 2 || held.size() % size != 0 || alike(held, norms, ranks, allowed)) continue;
      HeldSum& sum = by_size_[size].emplace_back(HeldSum{ranks});
      for (size_t r = 0; r < held.size(); ++r) {
        if ((ranks >> r & 1) == 0) continue;
        sum.parts += norms[r];
        for (size_t i = 0; i < kSketchNumbers; ++i) sum.sum[i] += held[r].sketch[i];
      }
    }
  }

  const std::vector<HeldSum>& of(size_t size) const { return by_size_[size]; }

 private:
  std::vector<std::vector<HeldSum>> by_size_;
};

// A sum, as near to a target as any.
struct NearSum {
  uint32_t ranks = 0;  // bits
  size_t target = 0;
  double error = kNever;
};

// The ranks fall into groups of one size, whose sums (or means) are the targets, each target as
// often as any other.
TensorPlacement in_groups(const Targets& targets, const HeldSums& held_sums, size_t ranks,
                          size_t size, bool mean, double allowed, double factor) {
  TensorPlacement found{mean ? PlacementKind::partial_mean : PlacementKind::partial, targets.dims};
  const double scale = factor * (mean ? static_cast<double>(size) : 1);
  std::vector<NearSum> sums;
  for (const HeldSum& sum : held_sums.of(size)) {
    NearSum best{sum.ranks};
    for (size_t t = 0; t < targets.all.size(); ++t) {
      const double of = std::fabs(scale) * targets.all[t].norm;
      const double error =
          relative_within(sum.sum, targets.all[t].sketch, scale, std::max(of, sum.parts), allowed);
      if (error < best.error) best = {sum.ranks, t, error};
    }
    if (best.error <= allowed) sums.push_back(best);
  }
  std::sort(sums.begin(), sums.end(),
            [](const NearSum& a, const NearSum& b) { return a.error < b.error; });
  uint32_t taken = 0;
  bool of_grid = targets.kind == PlacementKind::pieces;
  std::vector<bool> covered(targets.pieces, false);
  found.error = 0;
  found.set = targets.set;
  found.held.resize(ranks);
  for (const NearSum& sum : sums) {
    if (taken & sum.ranks) continue;
    taken |= sum.ranks;
    const Target& target = targets.all[sum.target];
    for (size_t r = 0; r < ranks; ++r)
      if ((sum.ranks >> r & 1) != 0) found.held[r] = {target.first, target.second};
    covered[targets.all[sum.target].first] = covered[targets.all[sum.target].second] = true;
    of_grid &= targets.all[sum.target].of_grid;
    found.error = std::max(found.error, sum.error);
  }
  found.omitted = omitted_by(covered);
  const uint32_t all = (uint32_t{1} << ranks) - 1;
  if (taken != all || found.omitted > 0 || of_grid) found.error = kNever;
  return found;
}

// The factors by which the first rank's value may be a multiple of what it may hold, in units.
std::vector<double> fitted(const Targets& targets, const RankValue& first, double unit) {
  std::vector<double> factors;
  for (const Target& target : targets.all) {
    double product = 0;
    for (size_t i = 0; i < kSketchNumbers; ++i) product += first.sketch[i] * target.sketch[i];
    const double square = target.norm * target.norm;
    // Below this, what is left is no multiple but nothing.
    if (square > 0 && std::fabs(product / square / unit) > 1e-3)
      factors.push_back(product / square / unit);
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
                          const std::vector<RankValue>& held, double allowed, double factor,
                          Hypotheses search, const HeldSums* sums) {
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
    offer(each_alone(targets, held, allowed, factor, search));
    if (sums == nullptr) continue;
    for (size_t size = 2; size <= held.size(); ++size) {
      if (held.size() % size != 0) continue;
      for (const bool mean : {false, true}) {
        // A mean of equal values is each of them.
        const TensorPlacement found =
            in_groups(targets, *sums, held.size(), size, mean, allowed, factor);
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
  for (const Targets& targets : hypotheses(whole, held.shape))
    for (const Target& target : targets.all)
      nearest = std::min(nearest, relative(distance(held.sketch, target.sketch), target.norm));
  return nearest;
}

TensorPlacement find_placement(const WholeValue& whole, const std::vector<RankValue>& held,
                               double allowed, double unit, Sums tried) {
  const std::vector<int64_t>& local = held.front().shape;
  for (const RankValue& value : held)
    if (value.shape != local) return {};
  const std::vector<Targets> all = hypotheses(whole, local);
  if (all.empty()) return {};
  const bool zero = norm(whole.sets[0].sketches[0].sums) == 0;
  // Sums over ranks only where no rank alone explains what it has: a mean of equal values is each.
  TensorPlacement best = best_with(all, held, allowed, unit, Hypotheses::nearest, nullptr);
  std::optional<HeldSums> of_ranks;
  if (tried == Sums::tried && best.error > allowed && held.size() > 1 && held.size() <= kMostSummed)
    of_ranks.emplace(held, allowed);
  const HeldSums* sums = of_ranks ? &*of_ranks : nullptr;
  if (sums != nullptr && !zero)
    best = best_with(all, held, allowed, unit, Hypotheses::nearest, sums);
  if (best.error <= allowed) {
    best.ambiguous = zero || best.other_error <= std::min(allowed, kClear * best.error);
    return best;
  }
  for (const double factor : {2.0, 0.5, 4.0, 0.25, 8.0, 0.125, 3.0, 1.0 / 3}) {
    TensorPlacement scaled =
        best_with(all, held, allowed, unit * factor, Hypotheses::fitting, sums);
    if (scaled.error > allowed) continue;
    scaled.factor = factor;
    scaled.ambiguous = scaled.other_error <= std::min(allowed, kClear * scaled.error);
    return scaled;
  }
  TensorPlacement multiple;
  for (const Targets& targets : all)
    for (const double factor : fitted(targets, held.front(), unit)) {
      TensorPlacement scaled =
          each_alone(targets, held, kFitAllowance * allowed, unit * factor, Hypotheses::fitting);
      scaled.factor = factor;
      if (better(scaled, multiple, kFitAllowance * allowed)) multiple = scaled;
    }
  if (multiple.error <= std::min(kFitAllowance * allowed, kLeftByFactor * best.error))
    return multiple;
  if (!best.is_of_some(held.size())) best.kind = PlacementKind::unknown;
  return best;
}

}  // namespace opguard
