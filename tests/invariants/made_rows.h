// tests/invariants/made_rows.h: views and rows of a test's own, by small numbers.
//
//   MadeViews made({{"a", 'c'}, {"b", 'x'}});     b may be concluded, a be asked
//   table_of(made, texts, {{0, 0, {"yes", "no"}}})
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "invariants/pattern_table.h"
#include "invariants/row.h"
#include "invariants/view.h"

namespace opguard {

// One row: of which program and run, and its cells; "" is unknown.
struct MadeRow {
  uint32_t program = 0, run = 0;
  std::vector<std::string> cells;
  uint32_t times = 1;
  double number = std::numeric_limits<double>::quiet_NaN();
};

inline std::vector<uint32_t> cells_of(const std::vector<std::string>& words, CellTexts& texts) {
  std::vector<uint32_t> cells;
  for (const std::string& word : words)
    cells.push_back(word.empty() ? kUnknown : texts.number(word));
  return cells;
}

inline PatternTable table_of(std::span<const RuleView> views, CellTexts& texts,
                             const std::vector<MadeRow>& rows, uint16_t view = 0) {
  PatternTable table(views);
  for (const MadeRow& made : rows) {
    const std::vector<uint32_t> cells = cells_of(made.cells, texts);
    ViewRow row;
    row.view = view;
    row.cells = cells;
    row.number = made.number;
    table.begin(made.program, made.run);
    for (uint32_t i = 0; i < made.times; ++i) table.add(row);
  }
  return table;
}

}  // namespace opguard
