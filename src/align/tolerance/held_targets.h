// align/tolerance/held_targets.h: what each rank may hold of a tensor, under one hypothesis of how
// all of them hold it.
//
//   reference [103, 64], ranks hold [26, 64] and [25, 64]
//     sharded along 0     of the one shape 3 pieces, rows 0-25, 26-51, 52-77; of the other rows
//                         78-102
//   reference [103, 64], ranks hold [26, 64]
//     sharded along 0     4 pieces, the last with a row of zeros: it is padded
//   reference [31, 13], ranks hold [300] and [103]
//     sharded             elements 0-299 and 300-402, laid end to end
//   reference [8, 64], ranks hold [4, 64]
//     sharded along 0     2 pieces
//     pieces along 0      12 ordered pairs of the 4 quarters
//
// Counterexample: ranks whose shapes are not those of any pieces have no hypothesis.
//
// The cost: a norm for each target. Of many pieces not every pair is one: the two that a zigzag
// has, and those that are half a tensor apart.
#pragma once

#include <cstdint>
#include <vector>

#include "align/tolerance/placement.h"

namespace opguard {

// What a rank may hold: a piece of the reference, or two.
struct Target {
  SketchSums sketch{};
  double norm = 0;
  uint32_t first = 0, second = 0;  // numbers of the pieces in it; equal if it is one
  // Two pieces that are a piece of the grid: a rank in the middle of a zigzag has such.
  bool of_grid = false;
  bool padded = false;  // the piece ends before what the rank holds does
};

// The number of the piece that a rank without elements has.
inline constexpr uint32_t kNoPiece = UINT32_MAX;

// Of an uneven cut.
struct PieceBox {
  std::vector<int64_t> first, size;
};

// All that ranks may hold under one hypothesis.
struct Targets {
  PlacementKind kind = PlacementKind::replicated;
  std::vector<uint8_t> dims{};
  std::vector<std::vector<Target>> of_shape{};  // for each of RankShapes::shapes
  uint32_t pieces = 1;
  size_t set = 0;                 // of WholeValue::sets; of an uneven cut its first
  std::vector<PieceBox> boxes{};  // of an uneven cut, by the pieces' numbers
  std::vector<int64_t> whole{};   // in which these lie

  // How many pieces no rank holds; of an uneven cut how many gaps are left. covered: by the
  // pieces' numbers.
  uint32_t omitted(const std::vector<bool>& covered) const;
};

// The different shapes that ranks hold, and which each has.
struct RankShapes {
  explicit RankShapes(const std::vector<RankValue>& held);

  std::vector<std::vector<int64_t>> shapes;
  std::vector<size_t> of_rank;  // in the order of the values
  bool is_empty(size_t rank) const;
};

// The sketch of the piece of shape `local` that begins there; nullptr: none was made.
const SketchSums* piece_at(const WholeValue& whole, const std::vector<int64_t>& local,
                           const std::vector<int64_t>& first);

std::vector<Targets> placement_hypotheses(const WholeValue& whole, const RankShapes& ranks);

}  // namespace opguard
