// invariants/voted_patterns.h: the patterns of one view, and who vouches for each.
//
//   tier general   a program has one vote, however many runs; columns with its names are left out
//   tier program   all runs are of one program: each has a vote, and names are looked at
//
// The cost: once over the patterns.
#pragma once

#include <cstdint>
#include <vector>

#include "invariants/pattern_table.h"

namespace opguard {

enum class VoteOf : uint8_t { program, run };

struct VotedPattern {
  std::vector<uint32_t> cells;
  // Of all runs together.
  uint64_t rows = 0;
  std::vector<uint32_t> voters, runs;  // ascending
};

struct VotedPatterns {
  const RuleView* view = nullptr;
  // In the order of the table's. A PatternSet's bit i is the i-th of these.
  std::vector<VotedPattern> patterns;
  uint32_t voters = 0;  // that have a row
};

// A column of more values is no category, and no rule asks it.
inline constexpr size_t kMostValues = 256;

VotedPatterns voted_patterns(const RuleView& view, const std::vector<Pattern>& patterns,
                             VoteOf vote, bool with_names);

}  // namespace opguard
