// matcher/clear_pairs.h: who fits whom clearly best, both ways.
//
//             new x   new y
//   old p      0.9     0.5      p is x: it leads q, who wants x too, by 0.15
//   old q      0.75    0.6      q prefers x; that is gone now, and q is y
//
// Counterexample: the greatest sum of all pairs. It would also pair what no margin tells apart, and
// a wrong scope costs every site in it.
//
// The cost: a pass over the values for each round, and every round but the last settles a pair.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace opguard {

// The best and how good the second best is. Values of 0 or less are no offer.
struct Best {
  double first = 0, second = 0;
  int64_t of = -1;
  void offer(double value, int64_t who) {
    if (value > first) {
      second = first;
      first = value;
      of = who;
    } else if (value > second) {
      second = value;
    }
  }
};

// values[i][j]: what pairing i with j is worth; 0 or not there: nothing. Pairs (i, j) that lead all
// others of i and of j by the margin. What is sure is taken out, then fewer are in doubt: a copy
// that found its own original is no rival of another.
std::vector<std::pair<uint32_t, uint32_t>> clear_pairs(
    const std::vector<std::unordered_map<uint32_t, double>>& values, size_t columns, double margin);

}  // namespace opguard
