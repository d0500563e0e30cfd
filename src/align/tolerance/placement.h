// align/tolerance/placement.h: what the ranks of a parallel run hold of a reference's tensor, told
// from sketches (record/sketch.h) alone.
//
//   reference [8, 64], 2 ranks with [8, 64] each, equal to it           replicated
//   2 ranks with [4, 64], equal to its upper and its lower half         sharded along 0
//   2 ranks with [4, 64], rows 0-1 and 6-7, rows 2-5                    pieces along 0 (zigzag)
//   2 ranks with [8, 64], whose sum is equal to it                      partial sum
//   any of these, twice as large                                        factor 2
//   2 ranks with [4, 64], both the upper half                           sharded, 1 piece omitted
//
// Nothing is declared. Each hypothesis is tried, and the one that leaves the smallest difference is
// taken. The first that fits may be wrong: in bfloat16 much is within what is allowed.
//
// Counterexample: a tensor of zeros, or of equal rows, fits several hypotheses alike. It is
// `ambiguous`, which is no finding.
//
// The cost: a product of 64 numbers for each rank and piece. Where sums over ranks are tried, one
// for each subset of up to 12 ranks; of more, for each group of a mesh.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "record/sketch.h"
#include "record/sketch_code.h"

namespace opguard {

// Of the reference: its shape, and the sketches of the tensor and of its pieces.
struct WholeValue {
  std::vector<int64_t> shape;
  std::vector<SketchSet> sets;  // the first is the tensor's own
};

// What one rank of the candidate holds.
struct RankValue {
  uint32_t rank = 0;
  std::vector<int64_t> shape;
  SketchSums sketch{};
  // The same without what may be padded, where that may be anything.
  std::vector<SketchSums> unpadded{};
};

enum class PlacementKind : uint8_t {
  replicated,
  sharded,       // each rank has a piece of a grid
  pieces,        // each rank has two pieces along a dimension
  partial,       // sums over ranks are the tensor, or its pieces
  partial_mean,  // their means are
  unknown        // no hypothesis is within what is allowed; the nearest is told in `error`
};

// Numbers of pieces; equal if it is one.
struct HeldPieces {
  uint32_t first = 0, second = 0;
  bool operator==(const HeldPieces&) const = default;
};

struct TensorPlacement {
  PlacementKind kind = PlacementKind::unknown;
  std::vector<uint8_t> dims{};  // that are cut
  double factor = 1;            // what the ranks hold is so many times the reference
  // The largest of the ranks' differences, relative to the norm of what it is compared with.
  double error = std::numeric_limits<double>::infinity();
  // Of the best hypothesis of another kind: ambiguous if it fits as well.
  double other_error = std::numeric_limits<double>::infinity();
  bool ambiguous = false;
  uint32_t omitted = 0;           // pieces that no rank holds
  std::vector<uint32_t> stray{};  // ranks that are not within what is allowed
  // Of WholeValue::sets, what it was told by; and for each rank its piece, or two, in that set's
  // order. Ranks of one sum have the same ones.
  size_t set = 0;
  std::vector<HeldPieces> held{};

  // Some of so many ranks have the whole tensor, and others something else.
  bool is_of_some(size_t ranks) const {
    return kind == PlacementKind::replicated && !stray.empty() && stray.size() < ranks;
  }
};

// A rank is held once, and there is at least one. What is allowed is the relative difference that
// rounding may make. The unit is the factor that is expected, as of gradients of a scaled loss;
// TensorPlacement::factor is relative to it. Sums over ranks are not tried
// of what is no part of any. Such is a parameter: zeros on all ranks but one are other weights.
enum class Sums : uint8_t { tried, none };
TensorPlacement find_placement(const WholeValue& whole, const std::vector<RankValue>& held,
                               double allowed, double unit = 1, Sums tried = Sums::tried);

// How far what one rank holds is from the nearest of all that it may hold: the tensor, a piece, two
// pieces. Relative to the norm of that; infinite where no piece has the shape.
double nearest_piece(const WholeValue& whole, const RankValue& held);

}  // namespace opguard
