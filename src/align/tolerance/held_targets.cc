// A hypothesis is one set of the reference's sketches, turned into what a rank may hold.
//
//   of_grid     a piece each             [2, 64] of an [8, 64]: 4 targets
//   of_halves   two pieces each          ordered pairs, since a sketch depends on the place:
//                                        (q0, q3) is not (q3, q0)
//   of_boxes    pieces of several        rows 0-25, 26-51, 52-77 for one shape, 78-102 for the
//               shapes, as one cut       other; the pieces are numbered through
//
// A rank may also have nothing: one behind the end of a padded tensor, or without elements. That is
// a target too (kNothing), for else such a rank would fit nothing.
#include "align/tolerance/held_targets.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <set>

namespace opguard {
namespace {

using Shape = std::vector<int64_t>;

// Of more pieces than that along a dimension only some pairs are tried.
constexpr size_t kMostPaired = 32;
constexpr uint64_t kMostElementary = 1 << 16;

bool has_no_elements(const Shape& shape) {
  return std::find(shape.begin(), shape.end(), 0) != shape.end();
}

// What a rank without elements has, or one behind the end of what is padded.
constexpr Target kNothing{{}, 0, kNoPiece, kNoPiece, false, true};

// Of 6 rows that 4 ranks hold in steps of 2 the last has nothing but its pad. Where the ranks are
// so many times the pieces, each piece has its copies.
bool may_lie_behind(const RankShapes& ranks, size_t pieces) {
  return ranks.shapes.size() == 1 && ranks.of_rank.size() > pieces &&
         ranks.of_rank.size() % pieces != 0;
}

bool exceeds(const Shape& local, const Shape& whole) {
  for (size_t d = 0; d < whole.size(); ++d)
    if (local[d] > whole[d]) return true;
  return false;
}

Target target_of(const SketchSums& sketch, uint32_t first, uint32_t second) {
  return {sketch, norm(sketch), first, second};
}

std::vector<uint8_t> cut_dims(const Shape& whole, const std::vector<Shape>& locals) {
  std::vector<uint8_t> dims;
  for (size_t d = 0; d < whole.size(); ++d)
    if (std::any_of(locals.begin(), locals.end(), [&](const Shape& s) { return s[d] != whole[d]; }))
      dims.push_back(static_cast<uint8_t>(d));
  return dims;
}

Targets of_grid(const SketchSet& set, const Shape& whole, const RankShapes& ranks) {
  Targets targets{PlacementKind::sharded, cut_dims(whole, {set.local}), {{}}};
  targets.pieces = static_cast<uint32_t>(set.sketches.size());
  for (uint32_t i = 0; i < targets.pieces; ++i)
    targets.of_shape[0].push_back(target_of(set.sketches[i].sums, i, i));
  if (may_lie_behind(ranks, targets.pieces)) targets.of_shape[0].push_back(kNothing);
  return targets;
}

// Is this pair tried? All are, of few pieces. Of many it is a part of the grid, of a zigzag, or
// each is the other's partner in the other half of the tensor.
bool is_tried(size_t a, size_t b, size_t along) {
  if (a == b) return false;
  return along <= kMostPaired || a + b == along - 1 || (a % 2 == 0 && b == a + 1) ||
         (a > b ? a - b : b - a) == along / 2;
}

// For each cell of the other dimensions, ordered pairs of two pieces along set.dim.
Targets of_halves(const SketchSet& set, const Shape& whole) {
  Targets targets{PlacementKind::pieces, cut_dims(whole, {set.local}), {{}}};
  const auto along = static_cast<size_t>(whole[set.dim] / set.local[set.dim] * 2);
  const size_t cells = set.sketches.size() / (2 * along);
  targets.pieces = static_cast<uint32_t>(cells * along);
  for (size_t cell = 0; cell < cells; ++cell)
    for (size_t a = 0; a < along; ++a)
      for (size_t b = 0; b < along; ++b) {
        if (!is_tried(a, b, along)) continue;
        const SketchSums& first = set.sketches[2 * (cell * along + a)].sums;
        const SketchSums& second = set.sketches[2 * (cell * along + b) + 1].sums;
        SketchSums sum = first;
        for (size_t i = 0; i < kSketchNumbers; ++i) sum[i] += second[i];
        targets.of_shape[0].push_back(target_of(sum, static_cast<uint32_t>(cell * along + a),
                                                static_cast<uint32_t>(cell * along + b)));
        targets.of_shape[0].back().of_grid = a % 2 == 0 && b == a + 1;
      }
  return targets;
}

// Where each piece of a set lies, in the order of its sketches.
std::vector<PieceBox> boxes_of(const SketchSet& set, const Shape& whole, const Shape& local) {
  std::vector<Shape> starts = set.starts;
  if (set.kind == SketchSetKind::whole) {
    starts.assign(whole.size(), {0});
  } else if (set.kind == SketchSetKind::grid) {
    starts.assign(whole.size(), {});
    for (size_t d = 0; d < whole.size(); ++d)
      for (int64_t at = 0; at < whole[d]; at += local[d]) starts[d].push_back(at);
  }
  std::vector<PieceBox> boxes;
  if (starts.size() != whole.size()) return boxes;
  for (size_t i = 0; i < set.sketches.size(); ++i) {
    PieceBox box{Shape(whole.size()), local};
    size_t rest = i;
    for (size_t d = whole.size(); d-- > 0;) {
      box.first[d] = starts[d][rest % starts[d].size()];
      box.size[d] = std::min(local[d], whole[d] - box.first[d]);
      rest /= starts[d].size();
    }
    boxes.push_back(std::move(box));
  }
  return boxes;
}

// A batch of `outer` sequences, folded into rows: [32, 96] with 2 is [2, 16, 96]. 0: not folded.
Shape unfolded(Shape shape, uint8_t outer) {
  if (outer == 0 || shape.empty()) return shape;
  shape[0] /= outer;
  shape.insert(shape.begin(), outer);
  return shape;
}

// One cut of all ranks. None where a rank's shape has no pieces in it, or all is as even cuts have
// it.
std::optional<Targets> of_boxes(const WholeValue& whole, const Shape& shape_of_whole,
                                const RankShapes& ranks, uint8_t outer) {
  const bool flat = shape_of_whole != whole.shape;
  Targets targets{PlacementKind::sharded};
  if (!flat) targets.dims = cut_dims(whole.shape, ranks.shapes);
  targets.whole = unfolded(shape_of_whole, outer);
  targets.set = whole.sets.size();
  bool uneven = ranks.shapes.size() > 1;
  for (const Shape& shape : ranks.shapes) {
    std::vector<Target>& all = targets.of_shape.emplace_back();
    if (has_no_elements(shape)) {
      all.push_back(kNothing);
      continue;
    }
    bool has_grid = false;
    for (const SketchSet& set : whole.sets) {
      const bool own = set.local == shape;
      const bool is_uneven = own && set.kind == SketchSetKind::uneven && set.dim == outer;
      // Those behind the first of a form are folded.
      const bool is_grid = own && set.kind == SketchSetKind::grid && outer == 0 && !has_grid;
      const bool is_whole =
          set.kind == SketchSetKind::whole && outer == 0 && !flat && shape == whole.shape;
      has_grid |= is_grid;
      if (!is_uneven && !is_grid && !is_whole) continue;
      uneven |= is_uneven;
      if (is_uneven) targets.set = std::min(targets.set, size_t(&set - whole.sets.data()));
      std::vector<PieceBox> boxes = boxes_of(set, targets.whole, unfolded(shape, outer));
      for (size_t i = 0; i < boxes.size(); ++i) {
        const auto number = static_cast<uint32_t>(targets.boxes.size() + i);
        all.push_back(target_of(set.sketches[i].sums, number, number));
        all.back().padded = boxes[i].size != unfolded(shape, outer);
      }
      std::move(boxes.begin(), boxes.end(), std::back_inserter(targets.boxes));
    }
    if (all.empty()) return std::nullopt;
    if (may_lie_behind(ranks, all.size()) || exceeds(shape, shape_of_whole))
      all.push_back(kNothing);
  }
  if (!uneven || targets.boxes.empty()) return std::nullopt;
  targets.pieces = static_cast<uint32_t>(targets.boxes.size());
  if (targets.set == whole.sets.size()) targets.set = 0;
  return targets;
}

}  // namespace

// Boxes of an uneven cut may overlap, so pieces cannot be counted. What no held box covers is
// counted in cells between all their ends, where cells that follow one another are one gap.
uint32_t Targets::omitted(const std::vector<bool>& covered) const {
  if (boxes.empty())
    return static_cast<uint32_t>(std::count(covered.begin(), covered.end(), false));
  // The tensor is cut at all ends of the pieces that are held. Gaps that touch are one.
  std::vector<std::vector<int64_t>> ends(whole.size());
  uint64_t cells = 1;
  for (size_t d = 0; d < whole.size(); ++d) {
    std::set<int64_t> at{0, whole[d]};
    for (size_t i = 0; i < boxes.size(); ++i)
      if (covered[i]) at.insert({boxes[i].first[d], boxes[i].first[d] + boxes[i].size[d]});
    ends[d].assign(at.begin(), at.end());
    cells *= ends[d].size() - 1;
    if (cells > kMostElementary) return 1;
  }
  uint32_t gaps = 0;
  bool in_gap = false;
  for (uint64_t cell = 0; cell < cells; ++cell) {
    std::vector<int64_t> at(whole.size());
    uint64_t rest = cell;
    for (size_t d = whole.size(); d-- > 0;) {
      at[d] = ends[d][rest % (ends[d].size() - 1)];
      rest /= ends[d].size() - 1;
    }
    bool is_held = false;
    for (size_t i = 0; i < boxes.size() && !is_held; ++i) {
      is_held = covered[i];
      for (size_t d = 0; d < whole.size() && is_held; ++d)
        is_held = at[d] >= boxes[i].first[d] && at[d] < boxes[i].first[d] + boxes[i].size[d];
    }
    gaps += !is_held && !in_gap;
    in_gap = !is_held;
  }
  return gaps;
}

RankShapes::RankShapes(const std::vector<RankValue>& held) {
  for (const RankValue& value : held) {
    const auto known = std::find(shapes.begin(), shapes.end(), value.shape);
    of_rank.push_back(static_cast<size_t>(known - shapes.begin()));
    if (known == shapes.end()) shapes.push_back(value.shape);
  }
}

bool RankShapes::is_empty(size_t rank) const { return has_no_elements(shapes[of_rank[rank]]); }

const SketchSums* piece_at(const WholeValue& whole, const Shape& local, const Shape& first) {
  bool has_grid = false;
  for (const SketchSet& set : whole.sets) {
    const bool is_whole = set.kind == SketchSetKind::whole && local == whole.shape;
    const bool is_uneven = set.kind == SketchSetKind::uneven && set.local == local && set.dim == 0;
    // Behind the first grid are those of a folded batch.
    const bool is_grid = set.kind == SketchSetKind::grid && set.local == local && !has_grid;
    has_grid |= is_grid;
    if (!is_whole && !is_uneven && !is_grid) continue;
    const std::vector<PieceBox> boxes = boxes_of(set, whole.shape, local);
    for (size_t i = 0; i < boxes.size(); ++i)
      if (boxes[i].first == first) return &set.sketches[i].sums;
  }
  return nullptr;
}

std::vector<Targets> placement_hypotheses(const WholeValue& whole, const RankShapes& ranks) {
  std::vector<Targets> all;
  // Elements laid end to end have no dimension of the tensor's.
  const bool flat =
      whole.shape.size() > 1 && std::all_of(ranks.shapes.begin(), ranks.shapes.end(),
                                            [](const Shape& shape) { return shape.size() == 1; });
  if (flat) {
    int64_t count = 1;
    for (const int64_t n : whole.shape) count *= n;
    if (std::optional<Targets> cut = of_boxes(whole, {count}, ranks, 0))
      all.push_back(std::move(*cut));
    return all;
  }
  for (const Shape& shape : ranks.shapes)
    if (shape.size() != whole.shape.size()) return all;
  const bool alike = ranks.shapes.size() == 1;
  if (alike && ranks.shapes[0] == whole.shape) {
    all.push_back(
        {PlacementKind::replicated, {}, {{target_of(whole.sets[0].sketches[0].sums, 0, 0)}}});
    return all;
  }
  std::set<uint8_t> outer{0};
  for (const SketchSet& set : whole.sets) {
    if (set.kind == SketchSetKind::uneven) outer.insert(set.dim);
    if (!alike || set.local != ranks.shapes[0]) continue;
    if (set.kind == SketchSetKind::grid)
      all.push_back(of_grid(set, whole.shape, ranks));
    else if (set.kind == SketchSetKind::halves)
      all.push_back(of_halves(set, whole.shape));
    else
      continue;
    all.back().set = static_cast<size_t>(&set - whole.sets.data());
  }
  for (const uint8_t size : outer)
    if (std::optional<Targets> cut = of_boxes(whole, whole.shape, ranks, size))
      all.push_back(std::move(*cut));
  return all;
}

}  // namespace opguard
