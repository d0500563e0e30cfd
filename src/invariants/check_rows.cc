#include "invariants/check_rows.h"

#include <algorithm>
#include <cmath>

#include "llvm/Support/xxhash.h"

namespace opguard {

namespace {

constexpr size_t kMostNames = 8;

bool among(const std::vector<uint32_t>& values, uint32_t cell) {
  return std::find(values.begin(), values.end(), cell) != values.end();
}

}  // namespace

RowChecker::RowChecker(std::span<const Invariant> rules, std::span<const View> views,
                       CellTexts& texts)
    : rules_(rules), views_(views.size()), applied_(rules.size()), broken_(rules.size()) {
  for (size_t r = 0; r < rules.size(); ++r) {
    if (!rules[r].muted.empty()) continue;
    for (size_t v = 0; v < views.size(); ++v) {
      if (views[v].name != rules[r].view) continue;
      auto compiled = [&](const CellTest& test) {
        CompiledTest made;
        made.column = static_cast<size_t>(column_number(views[v], test.column));
        for (const std::string& value : test.values) made.values.push_back(texts.number(value));
        return made;
      };
      CompiledRule rule{r, {}, {}};
      for (const CellTest& test : rules[r].when) rule.when.push_back(compiled(test));
      if (!rules[r].between) rule.then = compiled(rules[r].then);
      views_[v].rules.push_back(std::move(rule));
    }
  }
}

const RowChecker::Verdict& RowChecker::verdict(OfView& view, std::span<const uint32_t> cells) {
  if (view.last != kNone && std::ranges::equal(view.verdicts[view.last].cells, cells))
    return view.verdicts[view.last];
  const uint64_t hash = llvm::xxh3_64bits(
      llvm::ArrayRef(reinterpret_cast<const uint8_t*>(cells.data()), cells.size_bytes()));
  auto [from, to] = view.found.equal_range(hash);
  for (auto it = from; it != to; ++it)
    if (std::ranges::equal(view.verdicts[it->second].cells, cells)) {
      view.last = it->second;
      return view.verdicts[view.last];
    }
  Verdict made{{cells.begin(), cells.end()}, {}, {}};
  for (uint32_t i = 0; i < view.rules.size(); ++i) {
    const CompiledRule& rule = view.rules[i];
    const bool meets = std::all_of(rule.when.begin(), rule.when.end(), [&](auto& test) {
      return among(test.values, cells[test.column]);
    });
    if (!meets) continue;
    if (rules_[rule.rule].between) {
      made.ranged.push_back(i);
    } else if (cells[rule.then.column] != kUnknown) {
      applied_[rule.rule] = true;
      if (!among(rule.then.values, cells[rule.then.column])) made.breaks.push_back(i);
    }
  }
  view.last = static_cast<uint32_t>(view.verdicts.size());
  view.found.emplace(hash, view.last);
  view.verdicts.push_back(std::move(made));
  return view.verdicts.back();
}

void RowChecker::add(const Row& row) {
  ++rows_;
  steps_ = std::max(steps_, row.step + 1);
  OfView& view = views_[row.view];
  if (view.rules.empty()) return;
  const Verdict& found = verdict(view, row.cells);
  for (uint32_t i : found.breaks) breaks(view.rules[i].rule, row);
  for (uint32_t i : found.ranged) {
    if (std::isnan(row.number)) continue;
    const size_t rule = view.rules[i].rule;
    applied_[rule] = true;
    if (row.number < rules_[rule].between->first || row.number > rules_[rule].between->second)
      breaks(rule, row);
  }
}

void RowChecker::breaks(size_t rule, const Row& row) {
  BrokenRule& broken = broken_[rule];
  if (broken.times++ == 0) {
    broken.rule = &rules_[rule];
    broken.first = {row.step,
                    row.rank,
                    row.order,
                    row.event,
                    std::string(row.name),
                    std::string(row.module),
                    std::string(row.place),
                    std::string(row.detail)};
    order_.push_back(rule);
  } else if (broken.others.size() < kMostNames && row.name != broken.first.name &&
             std::find(broken.others.begin(), broken.others.end(), row.name) ==
                 broken.others.end()) {
    broken.others.push_back(std::string(row.name));
  }
}

std::vector<BrokenRule> RowChecker::broken() const {
  std::vector<BrokenRule> found;
  for (size_t rule : order_) found.push_back(broken_[rule]);
  return found;
}

size_t RowChecker::applied() const {
  return static_cast<size_t>(std::count(applied_.begin(), applied_.end(), true));
}

}  // namespace opguard
