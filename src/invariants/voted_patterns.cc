// Columns that no rule may ask are made unknown, and patterns that are alike then become one.
//
//   view call, tier general     module=user type=Block  drew=no   program 0, run 0
//                               module=user type=Expert drew=no   program 1, run 2
//   `type` holds names          module=user drew=no               voters 0 and 1, runs 0 and 2
//
// Counterexample: a column of more values than kMostValues, as a number in words would be. It would
// make a literal of each value, and the search is cubic in literals. "Unknown" counts as a value
// here.
#include "invariants/voted_patterns.h"

#include <algorithm>
#include <set>

namespace opguard {

namespace {

// Ascending and once each, so that a voter can be looked for by halving.
void put_in_order(std::vector<uint32_t>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

std::vector<bool> columns_to_ask(const RuleView& view, const std::vector<Pattern>& patterns,
                                 bool with_names) {
  std::vector<bool> ask(view.columns.size());
  for (size_t c = 0; c < ask.size(); ++c) {
    if (view.columns[c].names && !with_names) continue;
    std::set<uint32_t> values;
    for (const Pattern& pattern : patterns)
      // One more than may be is enough to know it.
      if (values.size() <= kMostValues) values.insert(pattern.cells[c]);
    ask[c] = values.size() <= kMostValues;
  }
  return ask;
}

}  // namespace

VotedPatterns voted_patterns(const RuleView& view, const std::vector<Pattern>& patterns,
                             VoteOf vote, bool with_names) {
  VotedPatterns voted{&view, {}, 0};
  const std::vector<bool> ask = columns_to_ask(view, patterns, with_names);
  CellIndex index(view.columns.size());
  std::vector<uint32_t> cells, all;
  for (const Pattern& pattern : patterns) {
    cells = pattern.cells;
    for (size_t c = 0; c < cells.size(); ++c)
      if (!ask[c]) cells[c] = kUnknown;
    const uint32_t number = index.number(cells);
    if (number == voted.patterns.size()) voted.patterns.push_back({cells, 0, {}, {}});
    VotedPattern& into = voted.patterns[number];
    into.rows += pattern.rows;
    // Doubles are taken out below: patterns that became one may share runs.
    for (const RunRows& run : pattern.runs) {
      into.voters.push_back(vote == VoteOf::program ? run.program : run.run);
      into.runs.push_back(run.run);
    }
  }
  for (VotedPattern& pattern : voted.patterns) {
    put_in_order(pattern.voters);
    put_in_order(pattern.runs);
    all.insert(all.end(), pattern.voters.begin(), pattern.voters.end());
  }
  put_in_order(all);
  voted.voters = static_cast<uint32_t>(all.size());
  return voted;
}

}  // namespace opguard
