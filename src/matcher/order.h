// matcher/order.h: the best order-keeping pairing of two sequences, and how sure each pair is.
//
//           x     y     z
//   a      1.0   0.2    -        a is x, b is y, c is z: worth 2.8
//   b      0.9   1.0    -        b nowhere: 1.0 less. b at x: 1.1 less, since a has no place then
//   c       -     -    0.8       c nowhere: 0.8 less. So the leads are 1.0, 1.0 and 0.8
//
// A lead is of the whole pairing and not of the pair. Counterexample: 1.0 against 0.9 in b's row
// looks like a near tie, and is none, since the 0.9 is at a's place.
//
// The cost: three tables of n * m floats. Above kMaxCells the sequences are cut at their anchors.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace opguard {

// Where an item of the first sequence went in the second.
struct Placement {
  int32_t at = -1;     // -1: nowhere
  double value = 0;    // similarity of the pair
  int32_t rival = -1;  // where the best other pairing of the whole puts it; -1: nowhere
  double lead = 0;     // how much less that pairing is worth; 0 is a tie
};

// similarity(i, j): what pairing i with j is worth; 0 where they cannot be paired. Pairs strictly
// increase in both. Sequences so long that the table would not fit are first cut at `anchors`:
// pairs (i, j), increasing in both, that are certain.
std::vector<Placement> pair_in_order(size_t n, size_t m,
                                     const std::function<double(size_t, size_t)>& similarity,
                                     const std::vector<std::pair<size_t, size_t>>& anchors = {});

}  // namespace opguard
