// invariants/safe_conditions.h: the shortest conditions under which a column has one value.
//
//   conclusion has_grad=yes: 40 patterns have it, 6 have not
//   held=yes                 none of the 6 meets it: safe; longer conditions with it are not tried
//   requires_grad=yes        2 of the 6 meet it: tried with a second condition
//
// Counterexample: dims=3 keeps out counterexamples of one program alone, so it is an accident of
// that program. Each condition has to be needed by counterexamples of two programs; of one where
// its column's meaning is known, or where the view compares ranks.
//
// After TrainCheck's preconditions (Jiang et al., OSDI 2025), from counted patterns in place of
// rows. The cost of a conclusion: literals^3 times patterns / 64 word operations at worst.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "invariants/literal_sets.h"
#include "invariants/voted_patterns.h"

namespace opguard {

struct SearchLimits {
  // A voter is a program, or a run where all runs are of one program (VoteOf).
  uint32_t least_voters = 3;   // that keep it
  uint32_t least_against = 2;  // voters whose counterexamples need a condition
  size_t most_literals = 3;    // besides the anchor's
  uint32_t most_breaking = 0;  // voters that may break it all the same
};

struct ColumnValue {
  uint32_t column = 0, value = 0;
  bool operator==(const ColumnValue&) const = default;
};

struct SafeConditions {
  std::vector<ColumnValue> when;  // the anchor first, then by column
  PatternSet keeps;               // meet all, and have the value
  uint64_t rows = 0, against = 0;
  std::vector<uint32_t> voters, runs;  // of `keeps`
  std::vector<uint32_t> breaking;      // voters
  // Voters that keep it, and without whose rows its conditions would be needed all the same. The
  // rule was not made from any one of these: it foretold them.
  uint32_t held_out = 0;
};

class ConditionSearch {
 public:
  ConditionSearch(const VotedPatterns& voted, const CellTexts& texts);

  // Of a column, by their texts.
  std::vector<uint32_t> values(size_t column) const;
  // All minimal safe conditions, in the order of columns and texts.
  // Under each set the conclusion holds; none contains another. `then` and the anchor's column are
  // never among the conditions that were searched.
  std::vector<SafeConditions> all(ColumnValue then, std::optional<ColumnValue> anchor,
                                  const SearchLimits& limits) const;

 private:
  const VotedPatterns& voted_;
  std::vector<Literal> literals_;  // by column, then by text
};

// The widest first; one that covers no pattern which those before it leave is dropped.
std::vector<SafeConditions> decision_list(std::vector<SafeConditions> all);

}  // namespace opguard
