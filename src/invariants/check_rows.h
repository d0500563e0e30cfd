// invariants/check_rows.h: rows of a run -> the rules that it breaks.
//
//   RowChecker checker(rules, views(), texts);
//   read_views(run, texts, checker);
//   checker.broken()
//
// Online, after each step: checker.take_new() gives the rules that were broken first since then.
//
// Which rules a pattern of cells meets and breaks is found once and remembered. So a row costs one
// hash, of those columns alone that a rule asks. Memory is bounded: by patterns of a view, up to
// kMostKept, by what is remembered of them, up to kMostEntries, and by rules.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "invariants/cell_index.h"
#include "invariants/compiled_rule.h"
#include "invariants/invariant.h"
#include "invariants/row.h"
#include "invariants/view.h"

namespace opguard {

// A row that breaks a rule, kept.
struct BrokenRow {
  uint32_t step = 0;
  int32_t rank = -1;
  uint64_t order = 0, event = kNone;
  std::string name{}, module{}, place{}, detail{};
};

struct BrokenRule {
  const Invariant* rule = nullptr;
  BrokenRow first{};  // by step and order: ranks come in turns
  // Rows that broke it.
  uint64_t times = 0;
  std::vector<std::string> others{};  // names of further rows, at most kMostNames
};

class RowChecker : public RowSink {
 public:
  // `rules` and `texts` outlive it; muted rules are left out, and those with unknown columns.
  RowChecker(std::span<const Invariant> rules, std::span<const RuleView> views, CellTexts& texts);

  void add(const ViewRow& row) override;

  // By the step and order in which they were broken first.
  std::vector<BrokenRule> broken() const;
  size_t broken_count() const { return order_.size(); }
  // Those that were first broken since it was asked last.
  std::vector<BrokenRule> take_new();
  // How many rules met a row.
  size_t applied() const;
  // How many rows a rule was asked of, by its position.
  std::vector<uint64_t> rows_of_rules() const;
  // Rows that came, of views without rules too.
  uint64_t rows() const { return rows_; }
  // The number of the last step that a row had, and one.
  uint32_t steps() const { return steps_; }

 private:
  static constexpr uint32_t kMostKept = 1 << 16;
  static constexpr size_t kMostEntries = 1 << 20;  // rules of all patterns of a view

  struct OfRule {
    size_t rule = 0;  // its position
    CompiledRule compiled;
  };
  struct PatternVerdict {
    uint64_t rows = 0;
    std::vector<uint32_t> asked, breaks, ranged;  // positions in the view's rules
  };
  struct OfView {
    std::vector<OfRule> rules;
    std::vector<uint32_t> columns;  // that a rule asks
    CellIndex index;
    std::vector<PatternVerdict> verdicts;
    size_t entries = 0;
  };
  PatternVerdict& verdict(OfView& view, std::span<const uint32_t> cells);
  void settle(OfView& view);  // its counts, and forgets its patterns
  void break_rule(size_t rule, const ViewRow& row);

  std::span<const Invariant> rules_;
  std::vector<OfView> views_;
  std::vector<uint64_t> asked_;     // rows, by rule
  std::vector<BrokenRule> broken_;  // by rule
  // Positions of rules, as they were broken; up to taken_ they were handed out.
  std::vector<size_t> order_;
  size_t taken_ = 0;
  std::vector<uint32_t> key_;
  uint64_t rows_ = 0;
  uint32_t steps_ = 0;
};

}  // namespace opguard
