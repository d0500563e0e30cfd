// matcher/order.h: the best order-keeping pairing of two sequences, and how sure each pair is.
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
