// Rows against rules, by patterns: what a row's asked columns hold decides everything but a range.
//
//   views_[parameter]   rules ask columns 0, 1, 3: a row of 35 cells is a key of 3
//   key {0, 0, 1}       verdict: asked {rule 4, rule 9}, breaks {rule 9}
//   the next such row   one look-up; rule 9 is broken once more
//
// `asked` is not counted up rule by rule for each row. A verdict counts its rows, and settle() or
// rows_of_rules() adds them up.
//
// Counterexample: rules with a range. The number is no part of the key, so it is compared for each
// row.
//
// The cost: a row is one hash of its key. A pattern that is new asks all rules of its view once.
#include "invariants/check_rows.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

namespace opguard {

namespace {

constexpr size_t kMostNames = 8;

// When a row was, as far as ranks can be compared: `order` is of one host's clock.
auto when_of(const BrokenRow& row) { return std::tuple(row.step, row.order); }

}  // namespace

RowChecker::RowChecker(std::span<const Invariant> rules, std::span<const RuleView> views,
                       CellTexts& texts)
    : rules_(rules), views_(views.size()), asked_(rules.size()), broken_(rules.size()) {
  std::vector<std::set<uint32_t>> columns(views.size());
  for (size_t r = 0; r < rules.size(); ++r) {
    const int v = view_number(views, rules[r].view);
    if (v < 0 || !rules[r].muted.empty() || !unknown_in(rules[r], views).empty()) continue;
    // With `texts` that may grow: no row has come, so no cell has the rule's values.
    OfRule of{r, compile_rule(rules[r], views[v], texts)};
    for (const CompiledTest& test : of.compiled.when)
      columns[v].insert(static_cast<uint32_t>(test.column));
    if (!of.compiled.ranged) columns[v].insert(static_cast<uint32_t>(of.compiled.then.column));
    views_[v].rules.push_back(std::move(of));
  }
  for (size_t v = 0; v < views.size(); ++v) {
    views_[v].columns.assign(columns[v].begin(), columns[v].end());
    views_[v].index = CellIndex(columns[v].size());
  }
}

// The reference holds until the next call: a new pattern moves the vector, and settle() empties it.
RowChecker::PatternVerdict& RowChecker::verdict(OfView& view, std::span<const uint32_t> cells) {
  key_.clear();
  for (uint32_t column : view.columns) key_.push_back(cells[column]);
  // A program whose cells are all different would fill the memory. What is forgotten is found anew.
  if (view.index.size() >= kMostKept || view.entries >= kMostEntries) settle(view);
  const uint32_t number = view.index.number(key_);
  if (number < view.verdicts.size()) return view.verdicts[number];
  PatternVerdict made;
  for (uint32_t i = 0; i < view.rules.size(); ++i) {
    const CompiledRule& rule = view.rules[i].compiled;
    if (!rule.applies(cells)) continue;
    (rule.ranged ? made.ranged : made.asked).push_back(i);
    if (rule.breaks(cells)) made.breaks.push_back(i);
  }
  view.entries += made.asked.size() + made.breaks.size() + made.ranged.size();
  view.verdicts.push_back(std::move(made));
  return view.verdicts.back();
}

void RowChecker::settle(OfView& view) {
  for (const PatternVerdict& one : view.verdicts)
    for (uint32_t i : one.asked) asked_[view.rules[i].rule] += one.rows;
  view.index.clear();
  view.verdicts.clear();
  view.entries = 0;
}

void RowChecker::add(const ViewRow& row) {
  ++rows_;
  steps_ = std::max(steps_, row.step + 1);
  OfView& view = views_[row.view];
  if (view.rules.empty()) return;
  PatternVerdict& found = verdict(view, row.cells);
  ++found.rows;
  for (uint32_t i : found.breaks) break_rule(view.rules[i].rule, row);
  for (uint32_t i : found.ranged) {
    if (std::isnan(row.number)) continue;
    const size_t rule = view.rules[i].rule;
    ++asked_[rule];
    const auto& [least, most] = *rules_[rule].between;
    if (row.number < least || row.number > most) break_rule(rule, row);
  }
}

// `first` is the earliest row, whichever came first. Rank 0 may have been fed up to step 5 before
// rank 1's step 3.
void RowChecker::break_rule(size_t rule, const ViewRow& row) {
  BrokenRule& broken = broken_[rule];
  const bool first = broken.times++ == 0;
  if (first) {
    broken.rule = &rules_[rule];
    order_.push_back(rule);
  }
  auto remember = [&](const std::string& name) {
    if (!name.empty() && name != broken.first.name && broken.others.size() < kMostNames &&
        std::find(broken.others.begin(), broken.others.end(), name) == broken.others.end())
      broken.others.push_back(name);
  };
  if (!first && std::tuple(row.step, row.order) >= when_of(broken.first)) {
    if (broken.others.size() < kMostNames && row.name != broken.first.name)
      remember(std::string(row.name));
    return;
  }
  // An earlier row takes the place; the one that stood there is one of the others.
  const std::string before = broken.first.name;
  broken.first = {row.step,
                  row.rank,
                  row.order,
                  row.event,
                  std::string(row.name),
                  std::string(row.module),
                  std::string(row.place),
                  std::string(row.detail)};
  std::erase(broken.others, broken.first.name);
  remember(before);
}

std::vector<BrokenRule> RowChecker::broken() const {
  std::vector<BrokenRule> found;
  for (size_t rule : order_) found.push_back(broken_[rule]);
  std::stable_sort(found.begin(), found.end(), [](const BrokenRule& a, const BrokenRule& b) {
    return when_of(a.first) < when_of(b.first);
  });
  return found;
}

// In the order in which they were broken. What a rule breaks later is in broken() alone.
std::vector<BrokenRule> RowChecker::take_new() {
  std::vector<BrokenRule> found;
  for (; taken_ < order_.size(); ++taken_) found.push_back(broken_[order_[taken_]]);
  return found;
}

std::vector<uint64_t> RowChecker::rows_of_rules() const {
  std::vector<uint64_t> rows = asked_;
  for (const OfView& view : views_)
    for (const PatternVerdict& one : view.verdicts)
      for (uint32_t i : one.asked) rows[view.rules[i].rule] += one.rows;
  return rows;
}

size_t RowChecker::applied() const {
  const std::vector<uint64_t> rows = rows_of_rules();
  return static_cast<size_t>(std::count_if(rows.begin(), rows.end(), [](uint64_t n) { return n; }));
}

}  // namespace opguard
