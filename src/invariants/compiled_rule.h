// invariants/compiled_rule.h: a rule whose columns and values are numbers.
//
//   with held=yes: has_grad=yes   ->   when {1: {0}}, then {3: {0}}
//
// A cell that is unknown meets no test, neither "is" nor "not".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "invariants/invariant.h"
#include "invariants/row.h"

namespace opguard {

struct CompiledTest {
  size_t column = 0;
  std::vector<uint32_t> values;
  bool negated = false;
  bool meets(std::span<const uint32_t> cells) const;
};

struct CompiledRule {
  std::vector<CompiledTest> when;
  CompiledTest then;  // of no use where the rule has a range
  bool ranged = false;
  bool meets(std::span<const uint32_t> cells) const;  // the conditions
  // The conditions, and the concluded column is known.
  bool applies(std::span<const uint32_t> cells) const {
    return meets(cells) && (ranged || cells[then.column] != kUnknown);
  }
  // Of a rule with a range the row's number decides, which stands beside the cells.
  bool breaks(std::span<const uint32_t> cells) const {
    return !ranged && applies(cells) && !then.meets(cells);
  }
};

// The view has all of its columns. Values that no text has are left out: no cell has them.
CompiledRule compile_rule(const Invariant& rule, const RuleView& view, const CellTexts& texts);
// Those that no text has become texts.
CompiledRule compile_rule(const Invariant& rule, const RuleView& view, CellTexts& texts);
// "" or the view or the column that nobody knows: "column 'hold'".
std::string unknown_in(const Invariant& rule, std::span<const RuleView> views);
// -1: unknown.
int view_number(std::span<const RuleView> views, std::string_view name);

}  // namespace opguard
