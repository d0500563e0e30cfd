// invariants/pattern_table.h: rows that are alike, counted once.
//
//   5,502 rows of view `parameter`  ->  76 patterns: how many rows of which runs have each
//
//   PatternTable table(views());
//   table.begin(program, run);
//   read_views(log, texts, table);
//
// Tables of several logs are merged in any order to the same counts. Counterexample: numbers of
// texts depend on the order in which they came, so nobody compares them across tables.
//
// The cost: one hash a row; memory by patterns and runs, not by rows.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "invariants/cell_index.h"
#include "invariants/row.h"
#include "invariants/view.h"

namespace opguard {

struct RunRows {
  uint32_t program = 0, run = 0;
  uint64_t rows = 0;
};

struct Pattern {
  std::vector<uint32_t> cells;
  uint64_t rows = 0;
  std::vector<RunRows> runs;
};

// Numbers of rows, in eighths of a power of two.
struct NumberTally {
  std::map<int32_t, uint64_t> buckets;
  double least = 0, most = 0;
  uint64_t outside = 0;  // not positive, or not finite
  std::set<uint32_t> programs, runs;
  void add(double number);
  void merge(const NumberTally& other, std::optional<uint32_t> program);
};

class PatternTable : public RowSink {
 public:
  explicit PatternTable(std::span<const RuleView> views);

  // What rows belong to from now on. The caller numbers programs, and the runs of all together.
  void begin(uint32_t program, uint32_t run);
  void add(const ViewRow& row) override;

  // Another table's rows as well; its texts are those of `from`. They are of `program`, where one
  // is given.
  void merge(const PatternTable& other, const CellTexts& from, CellTexts& into,
             std::optional<uint32_t> program = std::nullopt);

  const std::vector<Pattern>& patterns(size_t view) const { return tables_[view].patterns; }
  // By what the view's anchor says; kUnknown where it has none.
  const std::map<uint32_t, NumberTally>& numbers(size_t view) const {
    return tables_[view].numbers;
  }
  uint64_t rows() const { return rows_; }

 private:
  struct Table {
    CellIndex index;
    std::vector<Pattern> patterns;
    std::map<uint32_t, NumberTally> numbers;
  };
  Pattern& pattern(Table& table, std::span<const uint32_t> cells);
  static void count(Pattern& pattern, const RunRows& seen);

  std::span<const RuleView> views_;
  std::vector<Table> tables_;
  uint32_t program_ = 0, run_ = 0;
  uint64_t rows_ = 0;
};

}  // namespace opguard
