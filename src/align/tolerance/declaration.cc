// The declaration says which piece each place of the mesh has, and which places are added up.
//
//   mesh [2, 2], Shard(0) and Partial    places 0, 1: piece 0; places 2, 3: piece 1
//   added up                             0 + 1 and 2 + 3
//   the reference's pieces 0 and 1       equal to these sums: as found
#include "align/tolerance/declaration.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "align/tolerance/declared_cut.h"
#include "align/tolerance/held_targets.h"

namespace opguard {
namespace {

constexpr double kNowhere = std::numeric_limits<double>::infinity();
// What is a fitted multiple is compared less narrowly, as find_placement() does.
constexpr double kMultipleAllowance = 4;
// Parts of a tensor that a mesh may have. Beyond them nothing is said.
constexpr uint64_t kMostParts = 4096;

// What the ranks of one mesh hold, in its order; or sums over several meshes.
struct MeshValues {
  std::vector<SketchSums> sums;
  std::vector<double> parts;            // norms of the summands
  std::vector<const RankValue*> alone;  // where it is no sum but one rank's
};

class DeclarationCheck {
 public:
  DeclarationCheck(const WholeValue& whole, const std::vector<RankValue>& held,
                   const std::vector<Declaration>& declared, const TensorPlacement& found,
                   double allowed, double unit)
      : whole_(whole),
        held_(held),
        declared_(declared),
        found_(found),
        of_(declared.front()),
        told_(found.kind != PlacementKind::unknown && found.stray.empty() && !found.ambiguous),
        allowed_(found.factor == 1 ? allowed : kMultipleAllowance * allowed),
        factor_(found.kind == PlacementKind::unknown ? unit : unit * found.factor) {}

  DeclaredState state() {
    if (whole_.sets.empty()) return DeclaredState::untold;
    for (size_t r = 0; r < held_.size(); ++r)
      if (held_[r].shape.size() != whole_.shape.size() || declared_[r].along != of_.along ||
          declared_[r].mesh != of_.mesh)
        return DeclaredState::untold;
    const std::vector<int64_t>& local = held_.front().shape;
    for (DeclaredAlong& along : of_.along) {
      if (along.kind == DeclaredKind::other) return DeclaredState::untold;
      if (along.kind != DeclaredKind::shard) continue;
      if (along.dim < 0) along.dim += static_cast<int32_t>(local.size());
      if (along.dim < 0 || static_cast<size_t>(along.dim) >= local.size())
        return DeclaredState::untold;
    }
    if (of_.mesh.empty()) return without_mesh();
    if (!take_meshes()) return DeclaredState::untold;
    for (size_t d = 0; d < local.size(); ++d) {
      uint64_t declared = 1;
      for (size_t m = 0; m < of_.mesh.size(); ++m)
        if (is_cut_along(m, d)) declared *= of_.mesh[m];
      cut_.push_back(declared);
    }
    if (is_uneven()) {
      if (const std::optional<DeclaredState> told = take_uneven()) return *told;
      return state_of_cells();
    }
    for (size_t d = 0; d < local.size(); ++d) {
      pieces_.push_back(static_cast<uint64_t>(whole_.shape[d] / local[d]));
      // The shape alone says that it is not cut so.
      if (pieces_[d] % cut_[d] != 0) return otherwise_if(told_);
      beyond_.push_back(pieces_[d] / cut_[d]);
    }
    return take_cells() ? state_of_cells() : DeclaredState::untold;
  }

 private:
  DeclaredState state_of_cells() const {
    if (fits()) return DeclaredState::as_found;
    if (found_.kind == PlacementKind::pieces && told_ && !has_sums())
      return same_where_declared() ? DeclaredState::as_found : DeclaredState::otherwise;
    if (told_)
      return whole_.sets[found_.set].kind == SketchSetKind::halves ? DeclaredState::untold
                                                                   : DeclaredState::otherwise;
    return otherwise_if(!has_sums() && !same_where_declared());
  }

  static DeclaredState otherwise_if(bool wrong) {
    return wrong ? DeclaredState::otherwise : DeclaredState::untold;
  }
  bool is_cut_along(size_t m, size_t d) const {
    return of_.along[m].kind == DeclaredKind::shard && static_cast<size_t>(of_.along[m].dim) == d;
  }
  bool adds_along(size_t m) const {
    return of_.mesh[m] > 1 && (of_.along[m].kind == DeclaredKind::partial ||
                               of_.along[m].kind == DeclaredKind::partial_mean);
  }
  bool has_sums() const {
    for (size_t m = 0; m < of_.mesh.size(); ++m)
      if (adds_along(m)) return true;
    return false;
  }

  // Nobody says over which ranks: a dimension can be told, and parts of a sum.
  DeclaredState without_mesh() const {
    if (!told_ || of_.along.size() != 1) return DeclaredState::untold;
    const DeclaredAlong& along = of_.along.front();
    const bool whole = found_.dims.empty();
    const bool in_sums =
        found_.kind == PlacementKind::partial || found_.kind == PlacementKind::partial_mean;
    if (along.kind == DeclaredKind::shard) {
      if (whole || in_sums) return DeclaredState::untold;
      const auto dim = static_cast<uint8_t>(along.dim);
      return found_.dims == std::vector<uint8_t>{dim} ? DeclaredState::as_found
                                                      : DeclaredState::otherwise;
    }
    if (along.kind != DeclaredKind::replicate || !whole) return DeclaredState::untold;
    return in_sums ? DeclaredState::otherwise : DeclaredState::as_found;
  }

  // The places of `held` in each mesh. False: a rank of a mesh holds nothing here.
  bool take_meshes() {
    size_t size = 1;
    for (const uint32_t n : of_.mesh) size *= n;
    std::map<std::vector<uint32_t>, std::vector<size_t>> meshes;
    for (size_t r = 0; r < held_.size(); ++r) {
      const std::vector<uint32_t>& ranks = declared_[r].ranks;
      const auto at = std::find(ranks.begin(), ranks.end(), held_[r].rank);
      if (ranks.size() != size || at == ranks.end()) return false;
      auto [mesh, fresh] = meshes.try_emplace(ranks);
      if (fresh) mesh->second.assign(size, held_.size());
      mesh->second[static_cast<size_t>(at - ranks.begin())] = r;
    }
    for (auto& [ranks, places] : meshes) {
      if (std::find(places.begin(), places.end(), held_.size()) != places.end()) return false;
      meshes_.push_back(std::move(places));
    }
    return true;
  }

  // Which of the declared pieces of each dimension each place of a mesh has. As the library does:
  // cut into all of them first, and each dimension of the mesh takes its part of what is left.
  bool take_cells() {
    const size_t places = meshes_.front().size();
    for (size_t place = 0; place < places; ++place) {
      std::vector<uint64_t> cell;
      for (size_t d = 0; d < pieces_.size(); ++d) {
        std::vector<uint64_t> left(cut_[d]);
        for (uint64_t i = 0; i < cut_[d]; ++i) left[i] = i;
        size_t inner = places;
        for (size_t m = 0; m < of_.mesh.size(); ++m) {
          inner /= of_.mesh[m];
          if (!is_cut_along(m, d)) continue;
          const uint64_t mine = place / inner % of_.mesh[m], split = of_.along[m].split;
          if (split == 0 || left.size() % (split * of_.mesh[m]) != 0) return false;
          const uint64_t each = left.size() / split / of_.mesh[m];
          std::vector<uint64_t> taken;
          for (uint64_t s = 0; s < split; ++s)
            for (uint64_t i = 0; i < each; ++i)
              taken.push_back(left[(s * of_.mesh[m] + mine) * each + i]);
          left = std::move(taken);
        }
        if (left.size() != 1) return false;
        cell.push_back(left.front());
      }
      cells_.push_back(std::move(cell));
    }
    return true;
  }

  bool is_uneven() const {
    for (const RankValue& value : held_)
      for (size_t d = 0; d < cut_.size(); ++d)
        if (value.shape[d] != held_.front().shape[d] || value.shape[d] <= 0 ||
            whole_.shape[d] % value.shape[d] != 0)
          return true;
    return false;
  }

  // Where each place of a mesh has its piece, as DTensor cuts: cells_ are where these begin. What
  // no dimension of the mesh cuts may be cut evenly beyond it.
  std::optional<DeclaredState> take_uneven() {
    uneven_ = true;
    const std::vector<int64_t>& local = held_.front().shape;
    const size_t places = meshes_.front().size();
    cells_.assign(places, std::vector<uint64_t>(local.size(), 0));
    for (size_t d = 0; d < local.size(); ++d) {
      const int64_t whole = whole_.shape[d];
      const bool alike = std::all_of(held_.begin(), held_.end(), [&](const RankValue& value) {
        return value.shape[d] == local[d];
      });
      if (cut_[d] == 1) {
        if (!alike || local[d] <= 0 || whole % local[d] != 0) return otherwise_if(told_);
        pieces_.push_back(static_cast<uint64_t>(whole / local[d]));
        beyond_.push_back(pieces_[d]);
        continue;
      }
      pieces_.push_back(1);
      beyond_.push_back(1);
      // In equal steps of which the last are padded.
      const bool padded = alike && local[d] > 0 && whole > 0 &&
                          static_cast<uint64_t>(whole) <= cut_[d] * static_cast<uint64_t>(local[d]);
      const int64_t of = padded ? static_cast<int64_t>(cut_[d]) * local[d] : whole;
      for (size_t place = 0; place < places; ++place) {
        const std::optional<DeclaredInterval> mine = interval_of(place, d, of);
        if (!mine) return DeclaredState::untold;
        for (const std::vector<size_t>& mesh : meshes_)
          if (held_[mesh[place]].shape[d] != mine->size) return otherwise_if(told_);
        cells_[place][d] = static_cast<uint64_t>(mine->first);
      }
    }
    return std::nullopt;
  }

  std::optional<DeclaredInterval> interval_of(size_t place, size_t d, int64_t whole) const {
    DeclaredCut cut(whole);
    size_t inner = meshes_.front().size();
    for (size_t m = 0; m < of_.mesh.size(); ++m) {
      inner /= of_.mesh[m];
      if (is_cut_along(m, d))
        cut.take(place / inner % of_.mesh[m], of_.mesh[m], of_.along[m].split);
    }
    return cut.interval();
  }

  // Added up over what is declared as parts: of each place the sum, at its other coordinates.
  MeshValues added(const std::vector<size_t>& places) const {
    MeshValues values;
    std::map<size_t, size_t> sums;  // by the place with 0 at what is added up over
    for (size_t place = 0; place < places.size(); ++place) {
      size_t inner = places.size(), origin = place;
      for (size_t m = 0; m < of_.mesh.size(); ++m) {
        inner /= of_.mesh[m];
        if (adds_along(m)) origin -= place / inner % of_.mesh[m] * inner;
      }
      const auto [sum, fresh] = sums.try_emplace(origin, values.sums.size());
      if (fresh) {
        values.sums.emplace_back();
        values.parts.push_back(0);
        values.alone.push_back(nullptr);
      }
      add(values, sum->second, held_[places[place]].sketch, 1);
      values.alone[sum->second] = fresh ? &held_[places[place]] : nullptr;
    }
    return values;
  }

  static void add(MeshValues& values, size_t at, const SketchSums& sketch, double parts) {
    for (size_t i = 0; i < kSketchNumbers; ++i) values.sums[at][i] += sketch[i];
    values.parts[at] += parts * norm(sketch);
  }

  // The first place of each of added()'s sums.
  std::vector<size_t> origins_of_sums() const {
    std::vector<size_t> origins;
    for (size_t place = 0; place < cells_.size(); ++place) {
      size_t inner = cells_.size();
      bool first = true;
      for (size_t m = 0; m < of_.mesh.size(); ++m) {
        inner /= of_.mesh[m];
        first &= !adds_along(m) || place / inner % of_.mesh[m] == 0;
      }
      if (first) origins.push_back(place);
    }
    return origins;
  }

  std::vector<std::vector<uint64_t>> cells_of_sums() const {
    std::vector<std::vector<uint64_t>> cells;
    for (const size_t place : origins_of_sums()) cells.push_back(cells_[place]);
    return cells;
  }

  bool fits() const {
    std::vector<double> scales = scales_of_sums();
    std::vector<MeshValues> values;
    for (const std::vector<size_t>& mesh : meshes_) values.push_back(added(mesh));
    const auto fit = [&](const MeshValues& of, double times) {
      return std::any_of(scales.begin(), scales.end(),
                         [&](double scale) { return fits_somewhere(of, scale * times); });
    };
    if (std::all_of(values.begin(), values.end(), [&](const MeshValues& v) { return fit(v, 1); }))
      return true;
    if (values.size() < 2 ||
        (found_.kind != PlacementKind::partial && found_.kind != PlacementKind::partial_mean))
      return false;
    // Each mesh may have a part of a sum, as data parallelism beside it has.
    MeshValues all = values.front();
    all.alone.assign(all.sums.size(), nullptr);
    for (size_t mesh = 1; mesh < values.size(); ++mesh)
      for (size_t i = 0; i < all.sums.size(); ++i) {
        add(all, i, values[mesh].sums[i], 0);
        all.parts[i] += values[mesh].parts[i];
      }
    return fit(all, 1) || fit(all, static_cast<double>(values.size()));
  }

  // Of how many times the reference the declared sums are. Of ranks that have the same it is told.
  // The sum of two wholes is twice the whole, and that of two halves of each element the whole.
  // Else it may be a sum or a mean, for the factor is no layout.
  std::vector<double> scales_of_sums() const {
    double ranks = 1, summed = 1;
    for (size_t m = 0; m < of_.mesh.size(); ++m) {
      if (!adds_along(m)) continue;
      ranks *= of_.mesh[m];
      if (of_.along[m].kind == DeclaredKind::partial_mean) summed *= of_.mesh[m];
    }
    if (ranks == 1) return {1};
    const bool alone = found_.kind == PlacementKind::replicated ||
                       found_.kind == PlacementKind::sharded ||
                       found_.kind == PlacementKind::pieces;
    if (alone) return {summed, summed / found_.factor};
    return {1, ranks};
  }

  // Of a part of the reference the pieces of these sums; empty: one is not known.
  std::vector<const SketchSums*> uneven_targets(uint64_t part) const {
    std::vector<const SketchSums*> targets;
    static constexpr SketchSums kZeros{};
    for (const size_t place : origins_of_sums()) {
      const std::vector<int64_t>& local = held_[meshes_.front()[place]].shape;
      std::vector<int64_t> first;
      bool is_nothing = false;
      uint64_t rest = part;
      for (size_t d = 0; d < local.size(); ++d) {
        const auto beyond = static_cast<int64_t>(rest % beyond_[d]);
        rest /= beyond_[d];
        first.push_back(static_cast<int64_t>(cells_[place][d]) + beyond * local[d]);
        is_nothing |= local[d] == 0 || first[d] >= whole_.shape[d];
      }
      targets.push_back(is_nothing ? &kZeros : piece_at(whole_, local, first));
      if (targets.back() == nullptr) return {};
    }
    return targets;
  }

  bool fits_uneven(const MeshValues& values, double scale) const {
    uint64_t parts = 1;
    for (const uint64_t beyond : beyond_) parts *= beyond;
    for (uint64_t part = 0; part < std::min(parts, kMostParts); ++part) {
      const std::vector<const SketchSums*> targets = uneven_targets(part);
      bool all = !targets.empty();
      for (size_t i = 0; i < targets.size() && all; ++i)
        all = is_target(values, i, *targets[i], scale);
      if (all) return true;
    }
    return false;
  }

  bool is_target(const MeshValues& values, size_t i, const SketchSums& target, double scale) const {
    const double factor = factor_ * scale;
    const double of = std::max(std::fabs(factor) * norm(target), values.parts[i]);
    if (distance(values.sums[i], target, factor) <= allowed_ * of) return true;
    if (!uneven_ || values.alone[i] == nullptr) return false;
    // What lies in a pad may be anything.
    const std::vector<SketchSums>& without = values.alone[i]->unpadded;
    return std::any_of(without.begin(), without.end(), [&](const SketchSums& sums) {
      return distance(sums, target, factor) <= allowed_ * std::fabs(factor) * norm(target);
    });
  }

  // There is a part of the reference of which these are the pieces.
  bool fits_somewhere(const MeshValues& values, double scale) const {
    if (uneven_) return fits_uneven(values, scale);
    const std::vector<std::vector<uint64_t>> cells = cells_of_sums();
    uint64_t cells_of_whole = 1, parts = 1;
    for (size_t d = 0; d < pieces_.size(); ++d) {
      cells_of_whole *= pieces_[d];
      parts *= beyond_[d] * ways(d);
    }
    if (parts > kMostParts) return false;
    for (const SketchSet& set : whole_.sets) {
      const bool is_whole = set.kind == SketchSetKind::whole && cells_of_whole == 1;
      const bool is_grid = set.kind == SketchSetKind::grid && set.local == held_.front().shape;
      if ((!is_whole && !is_grid) || set.sketches.size() != cells_of_whole) continue;
      for (uint64_t part = 0; part < parts; ++part) {
        bool all = true;
        for (size_t i = 0; i < values.sums.size() && all; ++i)
          all = is_target(values, i, set.sketches[cell_of(cells[i], part)].sums, scale);
        if (all) return true;
      }
    }
    return false;
  }

  // What is cut beyond the declaration is cut before it, or after.
  uint64_t ways(size_t d) const { return beyond_[d] > 1 && cut_[d] > 1 ? 2 : 1; }

  uint64_t cell_of(const std::vector<uint64_t>& declared, uint64_t part) const {
    uint64_t cell = 0;
    for (size_t d = 0; d < pieces_.size(); ++d) {
      const uint64_t at = part % beyond_[d];
      part /= beyond_[d];
      const bool after = part % ways(d) == 1;
      part /= ways(d);
      cell =
          cell * pieces_[d] + (after ? declared[d] * beyond_[d] + at : at * cut_[d] + declared[d]);
    }
    return cell;
  }

  // Ranks of a mesh that are declared to have the same, have it.
  bool same_where_declared() const {
    for (const std::vector<size_t>& mesh : meshes_)
      for (size_t i = 0; i < mesh.size(); ++i)
        for (size_t j = i + 1; j < mesh.size(); ++j) {
          if (cells_[i] != cells_[j]) continue;
          const SketchSums &x = held_[mesh[i]].sketch, &y = held_[mesh[j]].sketch;
          if (distance(x, y) > 2 * allowed_ * std::max(norm(x), norm(y))) return false;
        }
    return true;
  }

  const WholeValue& whole_;
  const std::vector<RankValue>& held_;
  const std::vector<Declaration>& declared_;
  const TensorPlacement& found_;
  Declaration of_;
  const bool told_;  // what the ranks hold is known, and one thing
  const double allowed_, factor_;
  std::vector<std::vector<size_t>> meshes_;
  // Of each dimension: its pieces, how many of them are declared, and how many each of these has.
  std::vector<uint64_t> pieces_, cut_, beyond_;
  std::vector<std::vector<uint64_t>> cells_;  // of each place of a mesh, by dimension
  bool uneven_ = false;                       // then a cell is where the piece begins
};

}  // namespace

DeclaredState check_declaration(const WholeValue& whole, const std::vector<RankValue>& held,
                                const std::vector<Declaration>& declared,
                                const TensorPlacement& found, double allowed, double unit) {
  return DeclarationCheck(whole, held, declared, found, allowed, unit).state();
}

}  // namespace opguard
