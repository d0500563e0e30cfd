// Counting, and merging of tables that were filled on several threads.
//
//   table of log 1   text 7 is "Linear"     pattern {0, 1, 7}: 40 rows of run 0
//   table of log 2   text 4 is "Linear"     pattern {0, 1, 4}: 40 rows of run 1
//   merged           cells as words, then by the numbers of `into`: one pattern of 80 rows
//
// The cost of a merge: a look-up by text for each cell of each pattern. Rows are not looked at
// again.
#include "invariants/pattern_table.h"

#include <algorithm>
#include <cmath>

namespace opguard {

namespace {

constexpr double kBucketsOfOctave = 8;

}  // namespace

//   3.0   log2 is 1.58, times 8 is 12.7: bucket 12, which reaches from 2.83 to 3.08
//
// Only the bucket is kept of a number, besides the least and the most of all. So a tally of a long
// run is small.
void NumberTally::add(double number) {
  if (!(number > 0) || std::isinf(number)) {
    ++outside;
    return;
  }
  least = buckets.empty() ? number : std::min(least, number);
  most = buckets.empty() ? number : std::max(most, number);
  ++buckets[static_cast<int32_t>(std::floor(std::log2(number) * kBucketsOfOctave))];
}

void NumberTally::merge(const NumberTally& other, std::optional<uint32_t> program) {
  if (!other.buckets.empty()) {
    least = buckets.empty() ? other.least : std::min(least, other.least);
    most = buckets.empty() ? other.most : std::max(most, other.most);
  }
  for (const auto& [bucket, rows] : other.buckets) buckets[bucket] += rows;
  outside += other.outside;
  // One table a log is filled as "program 0": the caller knows better which it is.
  if (program)
    programs.insert(*program);
  else
    programs.insert(other.programs.begin(), other.programs.end());
  runs.insert(other.runs.begin(), other.runs.end());
}

PatternTable::PatternTable(std::span<const RuleView> views) : views_(views) {
  for (const RuleView& view : views) tables_.push_back({CellIndex(view.columns.size()), {}, {}});
}

void PatternTable::begin(uint32_t program, uint32_t run) {
  program_ = program;
  run_ = run;
}

Pattern& PatternTable::pattern(Table& table, std::span<const uint32_t> cells) {
  const uint32_t number = table.index.number(cells);
  if (number == table.patterns.size())
    table.patterns.push_back({{cells.begin(), cells.end()}, 0, {}});
  return table.patterns[number];
}

void PatternTable::count(Pattern& pattern, const RunRows& seen) {
  pattern.rows += seen.rows;
  // Mostly the run that was counted last. Rows of a run come together, so the search from the end
  // is short.
  for (size_t i = pattern.runs.size(); i-- > 0;)
    if (pattern.runs[i].run == seen.run && pattern.runs[i].program == seen.program) {
      pattern.runs[i].rows += seen.rows;
      return;
    }
  pattern.runs.push_back(seen);
}

void PatternTable::add(const ViewRow& row) {
  Table& table = tables_[row.view];
  ++rows_;
  count(pattern(table, row.cells), {program_, run_, 1});
  // NaN: the row has no number. A loss that is NaN counts so as well; the column `finite` tells of
  // it.
  if (std::isnan(row.number)) return;
  const int anchor = views_[row.view].anchor;
  NumberTally& tally = table.numbers[anchor < 0 ? kUnknown : row.cells[anchor]];
  tally.add(row.number);
  tally.programs.insert(program_);
  tally.runs.insert(run_);
}

void PatternTable::merge(const PatternTable& other, const CellTexts& from, CellTexts& into,
                         std::optional<uint32_t> program) {
  auto translated = [&](uint32_t cell) {
    return cell == kUnknown ? kUnknown : into.number(from.text(cell));
  };
  for (size_t v = 0; v < tables_.size(); ++v) {
    for (const Pattern& theirs : other.tables_[v].patterns) {
      std::vector<uint32_t> cells = theirs.cells;
      std::ranges::transform(cells, cells.begin(), translated);
      Pattern& mine = pattern(tables_[v], cells);
      for (const RunRows& run : theirs.runs)
        count(mine, {program.value_or(run.program), run.run, run.rows});
    }
    for (const auto& [anchor, tally] : other.tables_[v].numbers)
      tables_[v].numbers[translated(anchor)].merge(tally, program);
  }
  rows_ += other.rows_;
}

}  // namespace opguard
