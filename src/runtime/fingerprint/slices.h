// runtime/fingerprint/slices.h: sketches of the pieces of a tensor that ranks of another layout may
// hold.
//
//   x [8, 64], a rank holds [4, 64]     grid: rows 0-3 and rows 4-7
//                                       halves along 0: rows 0-1, 2-3, 4-5, 6-7, each as the first
//                                       and as the second half of a [4, 64]
//
// A rank holds two halves of a sequence that is cut in zigzag. It does so of a weight that has gate
// and projection in one.
//
//   x [103, 64], ranks hold [26, 64]    uneven: rows 0-25, 26-51, 52-77; and 78-102 of a [25, 64]
//   and [25, 64]
//
// Counterexample: by its shape alone [103, 64] is not cut into [26, 64]. Who holds what has to add
// up (uneven_cuts.h).
// The cost: one pass over the tensor for the grid, two for the halves along each dimension.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "record/sketch_code.h"
#include "runtime/fingerprint/sketch.h"
#include "runtime/fingerprint/uneven_cuts.h"

namespace opguard {

// May at most `world` ranks hold such pieces of a tensor of shape `whole`? Not if it is the whole.
bool cuts(const std::vector<int64_t>& whole, const std::vector<int64_t>& local, int64_t world);

struct Unpadded {
  uint8_t dim = 0;
  int64_t size = 0;
};

// The pieces of a tensor that are asked for.
struct PiecesWanted {
  std::vector<std::vector<int64_t>> locals{};  // of these shapes, all of which cut it
  // A first dimension may be two in one, as [2 * 16, 96] of a batch of 2. A rank with the left half
  // of each sequence holds rows 0-7 and 16-23. These are the sizes that the outer of the two may
  // have.
  std::vector<int64_t> outer{};
  // Shapes of another program. Each is sketched where it is this one with two dimensions exchanged,
  // or with one moved: [B, C, H, W] and [B, H, W, C].
  std::set<std::vector<int64_t>> exchanged{};
  std::vector<UnevenPieces> uneven{};
  // The tensor itself with zeros behind the first `size` of this dimension.
  std::vector<Unpadded> unpadded{};
};

// The tensor's own sketch, then those of its pieces. `known`: the tensor's own, where it was made
// before.
std::vector<SketchSet> sketch_sets(const Elements& elements, FloatType type,
                                   const PiecesWanted& wanted = {}, unsigned threads = 1,
                                   const Sketch* known = nullptr);

}  // namespace opguard
