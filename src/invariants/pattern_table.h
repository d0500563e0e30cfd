// invariants/pattern_table.h: rows that are alike, counted once.
//
//   5,502 rows of view `parameter`  ->  76 patterns: in how many rows, which programs, which runs
//
// Tables of several logs are merged in any order to the same table.
//
// The cost: one hash a row; memory by patterns, not by rows.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "invariants/row.h"
#include "invariants/view.h"

namespace opguard {

struct Pattern {
  std::vector<uint32_t> cells;
  uint64_t rows = 0;
  std::set<uint32_t> programs, runs;
};

class PatternTable : public RowSink {
 public:
  explicit PatternTable(std::span<const View> views) : views_(views), tables_(views.size()) {}

  // What rows belong to from now on; programs and runs are numbered by the caller.
  void begin(uint32_t program, uint32_t run);
  void add(const Row& row) override;
  void end();  // of a run

  // Another table's rows as well; its texts are those of `from`.
  void merge(const PatternTable& other, const CellTexts& from, CellTexts& into);

  const std::vector<Pattern>& patterns(size_t view) const { return tables_[view].patterns; }
  uint64_t rows() const { return rows_; }

 private:
  struct Table {
    std::vector<Pattern> patterns;
    std::unordered_multimap<uint64_t, uint32_t> found;
    uint32_t last = kNone;
    std::vector<uint64_t> pending;  // rows of the present run, by pattern
  };
  Pattern& pattern(Table& table, std::span<const uint32_t> cells, uint32_t& number);

  std::span<const View> views_;
  std::vector<Table> tables_;
  uint32_t program_ = 0, run_ = 0;
  uint64_t rows_ = 0;
};

}  // namespace opguard
