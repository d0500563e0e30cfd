// fleet/fleet_lines.h: the verdict of a fleet in sentences, for the terminal and the map.
//
// Ranks that tell the same are one line: of 1,024 ranks that got it by one collective there is one.
//
//   rank 5: began here: model.py:12  torch.matmul, forward, step 7
//   ranks 0-4, 6, 7: received from rank 5 by train.py:40  dist.all_reduce, backward, step 7,
//                    group 0-7, number 8
//
// Counterexample: equal ranks have no line, only a count.
//
// The cost: a sentence is made for each rank that is not equal, and held once for all that say it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fleet/merge_parts.h"

namespace opguard {

inline constexpr size_t kMostLines = 12;  // of thousands so many are shown

struct FleetLine {
  std::vector<size_t> told;  // index in FleetVerdict::ranks, by rank
  std::string ranks_text;    // "rank 5", "ranks 0-4, 6"
  std::string text;          // "received from rank 5 by train.py:40  dist.all_reduce, ..."
};

struct FleetLines {
  std::string headline;          // "diverged: it began on rank 5"
  std::string counts;            // "8 ranks, 12 steps, ..."
  std::string pivot;             // "model.py:12  torch.matmul, forward, step 7, ...", "" for none
  std::string missing;           // "missing is part 3 of 8: ...", "" for none
  std::vector<FleetLine> lines;  // the origins first
};

// Nothing in them drives a terminal: names are shown() (support/text.h).
FleetLines fleet_lines(const Part& all, const FleetVerdict& verdict);

}  // namespace opguard
