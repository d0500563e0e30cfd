// fleet/merge_parts.h: parts -> one part; and of the whole, one verdict.
//
//   rank 0   differs first in its all_reduce number 12: it was given another value
//   rank 5   differs first in an operator, behind its all_reduce number 11
//   verdict  it began on rank 5, which gave it to rank 0 by all_reduce number 12
//
// Merging is a union: in any order, in any grouping, the same. Parts that are missing leave their
// ranks open, and nothing else.
// Counterexample: two ranks on which it began, side by side. The first step decides, then whose
// operator made what differs itself, then who had passed fewer collectives, then the lower rank.
// The cost: linear in the ranks, but for the members of groups that differ.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "align/judge/verdict.h"
#include "fleet/part.h"
#include "llvm/Support/Error.h"

namespace opguard {

// Error: they are of other runs or of another number of parts, or one rank is told unlike in both.
llvm::Expected<Part> merge_parts(Part a, Part b);
// Of many, two neighbours at a time, so that each rank is moved a few times only: 14 of 10,000.
// Error: as above; there is none.
llvm::Expected<Part> merge_parts(std::vector<Part> parts);

struct FleetRank {
  int32_t rank = 0;
  RankRole role = RankRole::unknown;
  size_t part = 0;            // index in Part::ranks
  std::vector<int32_t> from;  // received: the ranks that had other values before
  bool operator==(const FleetRank&) const = default;
};

struct FleetVerdict {
  Outcome outcome = Outcome::inconclusive;
  std::optional<size_t> origin;  // index in Part::ranks; its first finding is the pivot
  std::vector<FleetRank> ranks;  // that are not equal
  uint64_t equal = 0, open = 0, steps = 0, pairs = 0, records = 0, certified = 0;
  std::vector<uint32_t> missing;  // parts
  std::string why;                // where it is inconclusive
};

FleetVerdict judge_parts(const Part& all);

}  // namespace opguard
