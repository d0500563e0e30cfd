// invariants/check_rows.h: rows of a run -> the rules that it breaks.
//
//   RowChecker checker(rules, views(), texts);
//   read_views(run, texts, checker);
//   checker.broken()
//
// Which rules a pattern of cells meets and breaks is found once and remembered, so a row costs one
// hash. Rules may be asked for what is new after each step.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "invariants/invariant.h"
#include "invariants/row.h"
#include "invariants/view.h"

namespace opguard {

// A row that breaks a rule, kept.
struct BrokenRow {
  uint32_t step = 0;
  int32_t rank = -1;
  uint64_t order = 0, event = kNone;
  std::string name, module, place, detail;
};

struct BrokenRule {
  const Invariant* rule = nullptr;
  BrokenRow first;
  uint64_t times = 0;
  std::vector<std::string> others;  // names of further rows, at most kMostNames
};

class RowChecker : public RowSink {
 public:
  // `rules` and `texts` outlive it; muted rules are left out.
  RowChecker(std::span<const Invariant> rules, std::span<const View> views, CellTexts& texts);

  void add(const Row& row) override;

  // In the order in which they were broken first.
  std::vector<BrokenRule> broken() const;
  size_t broken_count() const { return order_.size(); }
  // How many rules met a row; how many did not.
  size_t applied() const;
  uint64_t rows() const { return rows_; }
  uint32_t steps() const { return steps_; }

 private:
  struct CompiledTest {
    size_t column = 0;
    std::vector<uint32_t> values;
  };
  struct CompiledRule {
    size_t rule = 0;
    std::vector<CompiledTest> when;
    CompiledTest then;
  };
  struct Verdict {
    std::vector<uint32_t> cells;
    std::vector<uint32_t> breaks;  // positions in the view's rules
    std::vector<uint32_t> ranged;  // rules of a range whose conditions it meets
  };
  struct OfView {
    std::vector<CompiledRule> rules;
    std::vector<Verdict> verdicts;
    std::unordered_multimap<uint64_t, uint32_t> found;
    uint32_t last = kNone;
  };
  const Verdict& verdict(OfView& view, std::span<const uint32_t> cells);
  void breaks(size_t rule, const Row& row);

  std::span<const Invariant> rules_;
  std::vector<OfView> views_;
  std::vector<bool> applied_;
  std::vector<BrokenRule> broken_;  // by rule
  std::vector<size_t> order_;
  uint64_t rows_ = 0;
  uint32_t steps_ = 0;
};

}  // namespace opguard
