// invariants/number_ranges.h: numbers of good runs -> the range in which they lie.
//
//   norms of gradients from 0.2 to 3, their logarithms' median 1, their spread small
//   rule: every optimizer's step: a number between 0.05 and 20        severity note
//
// The median, and eight times the median distance from it, of the logarithms. Of five programs or
// three runs, and only where all good numbers lie within: a rule that a good run breaks is none.
#pragma once

#include <map>
#include <vector>

#include "invariants/invariant.h"
#include "invariants/pattern_table.h"

namespace opguard {

void add_ranges(const RuleView& view, const std::map<uint32_t, NumberTally>& numbers,
                const CellTexts& texts, bool one_program, std::vector<Invariant>& rules);

}  // namespace opguard
