// invariants/explain_rule.h: why a rule is one, for `--explain`.
//
//   kept in 9 programs, 1,402 rows
//     1,200 rows of 8 programs: requires_grad=yes held=yes has_grad=yes ...
//   outside, 56 rows of 2 programs: requires_grad=no held=yes has_grad=no ...
//
// The cost: once over the patterns of the rule's view.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "invariants/invariant.h"
#include "invariants/pattern_table.h"

namespace opguard {

struct RuleReasons {
  struct Alike {                                             // rows that are alike
    std::vector<std::pair<std::string, std::string>> cells;  // column, value
    uint64_t rows = 0;
    std::vector<uint32_t> programs;
  };
  std::vector<RunRows> kept, broken;  // by program and run
  // The most frequent ones.
  std::vector<Alike> supporting, outside, breaking;
};
RuleReasons explain_rule(const Invariant& rule, const PatternTable& table, const CellTexts& texts,
                         std::span<const RuleView> views);
// `programs` by their numbers.
std::string reasons_words(const Invariant& rule, const RuleReasons& reasons,
                          const std::vector<std::string>& programs);

}  // namespace opguard
