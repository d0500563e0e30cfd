#include "invariants/pattern_table.h"

#include <algorithm>

#include "llvm/Support/xxhash.h"

namespace opguard {

namespace {

uint64_t hash_cells(std::span<const uint32_t> cells) {
  return llvm::xxh3_64bits(
      llvm::ArrayRef(reinterpret_cast<const uint8_t*>(cells.data()), cells.size_bytes()));
}

}  // namespace

void PatternTable::begin(uint32_t program, uint32_t run) {
  program_ = program;
  run_ = run;
}

Pattern& PatternTable::pattern(Table& table, std::span<const uint32_t> cells, uint32_t& number) {
  const uint64_t hash = hash_cells(cells);
  auto [from, to] = table.found.equal_range(hash);
  for (auto it = from; it != to; ++it)
    if (std::ranges::equal(table.patterns[it->second].cells, cells)) {
      number = it->second;
      return table.patterns[number];
    }
  number = static_cast<uint32_t>(table.patterns.size());
  table.patterns.push_back({{cells.begin(), cells.end()}, 0, {}, {}});
  table.found.emplace(hash, number);
  return table.patterns.back();
}

void PatternTable::add(const Row& row) {
  Table& table = tables_[row.view];
  ++rows_;
  // Rows of a kind come one after the other.
  if (table.last == kNone || !std::ranges::equal(table.patterns[table.last].cells, row.cells))
    pattern(table, row.cells, table.last);
  if (table.pending.size() <= table.last) table.pending.resize(table.patterns.size());
  ++table.pending[table.last];
}

void PatternTable::end() {
  for (Table& table : tables_) {
    for (size_t i = 0; i < table.pending.size(); ++i) {
      if (table.pending[i] == 0) continue;
      table.patterns[i].rows += table.pending[i];
      table.patterns[i].programs.insert(program_);
      table.patterns[i].runs.insert(run_);
    }
    table.pending.clear();
  }
}

void PatternTable::merge(const PatternTable& other, const CellTexts& from, CellTexts& into) {
  for (size_t v = 0; v < tables_.size(); ++v)
    for (const Pattern& theirs : other.tables_[v].patterns) {
      std::vector<uint32_t> cells = theirs.cells;
      for (uint32_t& cell : cells)
        if (cell != kUnknown) cell = into.number(from.text(cell));
      uint32_t number = 0;
      Pattern& mine = pattern(tables_[v], cells, number);
      mine.rows += theirs.rows;
      mine.programs.insert(theirs.programs.begin(), theirs.programs.end());
      mine.runs.insert(theirs.runs.begin(), theirs.runs.end());
    }
  rows_ += other.rows_;
}

}  // namespace opguard
