#include "invariants/mine.h"

#include <algorithm>
#include <map>
#include <set>

#include "invariants/literal_sets.h"

namespace opguard {

namespace {

constexpr size_t kMostOpen = 400;  // conjunctions that are neither safe nor given up, of a length

// The patterns of one view, as rules of a tier may look at them.
class ViewMiner {
 public:
  ViewMiner(const View& view, const std::vector<Pattern>& patterns, const CellTexts& texts,
            const MiningOptions& options)
      : view_(view), texts_(texts), options_(options) {
    std::map<std::vector<uint32_t>, Pattern> merged;
    for (const Pattern& pattern : patterns) {
      if (pattern.rows == 0) continue;
      std::vector<uint32_t> cells = pattern.cells;
      if (!options.one_program)
        for (size_t c = 0; c < cells.size(); ++c)
          if (view.columns[c].names) cells[c] = kUnknown;
      Pattern& into = merged[cells];
      into.cells = cells;
      into.rows += pattern.rows;
      into.programs.insert(pattern.programs.begin(), pattern.programs.end());
      into.runs.insert(pattern.runs.begin(), pattern.runs.end());
    }
    for (auto& [cells, pattern] : merged) patterns_.push_back(std::move(pattern));
    std::set<uint32_t> programs;
    for (const Pattern& pattern : patterns_)
      programs.insert(pattern.programs.begin(), pattern.programs.end());
    need_ = options.one_program
                ? 1
                : std::min<size_t>(options.min_programs, std::max<size_t>(2, programs.size()));
  }

  void mine(std::vector<Invariant>& rules) const {
    for (size_t c = 0; c < view_.columns.size(); ++c) {
      if (!view_.columns[c].concluded) continue;
      for (uint32_t value : values_of(c, PatternSet(patterns_.size(), true))) {
        const std::string& text = texts_.text(value);
        conclude(c, value, text, rules);
      }
    }
  }

 private:
  struct Conjunction {
    std::vector<size_t> literals;  // positions, ascending
    PatternSet patterns;
  };

  // By their texts, so that numbers of another run change nothing.
  std::vector<uint32_t> values_of(size_t column, const PatternSet& among) const {
    std::set<uint32_t> numbers;
    among.each([&](size_t i) {
      if (patterns_[i].cells[column] != kUnknown) numbers.insert(patterns_[i].cells[column]);
    });
    std::vector<uint32_t> sorted(numbers.begin(), numbers.end());
    std::sort(sorted.begin(), sorted.end(),
              [&](uint32_t a, uint32_t b) { return texts_.text(a) < texts_.text(b); });
    return sorted;
  }

  size_t programs_in(const PatternSet& set) const {
    std::set<uint32_t> programs;
    set.each([&](size_t i) {
      programs.insert(patterns_[i].programs.begin(), patterns_[i].programs.end());
    });
    return programs.size();
  }
  size_t runs_in(const PatternSet& set) const {
    std::set<uint32_t> runs;
    set.each([&](size_t i) { runs.insert(patterns_[i].runs.begin(), patterns_[i].runs.end()); });
    return runs.size();
  }
  uint64_t rows_in(const PatternSet& set) const {
    uint64_t rows = 0;
    set.each([&](size_t i) { rows += patterns_[i].rows; });
    return rows;
  }
  bool supports(const PatternSet& set) const {
    return rows_in(set) >= options_.min_rows && programs_in(set) >= need_;
  }

  bool may_be_condition(size_t column, size_t conclusion) const {
    const Column& asked = view_.columns[column];
    const Column& concluded = view_.columns[conclusion];
    if (column == conclusion || !asked.condition) return false;
    if (asked.names && !options_.one_program) return false;
    return asked.family.empty() || asked.family != concluded.family;
  }

  std::vector<Literal> literals_for(size_t conclusion, const PatternSet& known) const {
    std::vector<Literal> found;
    for (size_t c = 0; c < view_.columns.size(); ++c) {
      if (!may_be_condition(c, conclusion)) continue;
      const auto values = values_of(c, known);
      size_t seen = values.size();
      known.each([&](size_t i) { seen += patterns_[i].cells[c] == kUnknown; });
      if (seen < 2 && static_cast<int>(c) != view_.anchor) continue;  // all have it: no condition
      for (uint32_t value : values) {
        Literal literal{static_cast<uint32_t>(c), value, PatternSet(patterns_.size())};
        known.each([&](size_t i) {
          if (patterns_[i].cells[c] == value) literal.patterns.insert(i);
        });
        found.push_back(std::move(literal));
      }
    }
    return found;
  }

  // Each condition keeps out counterexamples of two programs.
  bool is_no_accident(const Conjunction& tried, const std::vector<Literal>& literals,
                      const PatternSet& negative, const PatternSet& known) const {
    if (options_.one_program) return true;
    for (size_t left_out : tried.literals) {
      const Column& column = view_.columns[literals[left_out].column];
      if (static_cast<int>(literals[left_out].column) == view_.anchor) continue;
      PatternSet rest = known;
      for (size_t other : tried.literals)
        if (other != left_out) rest = rest & literals[other].patterns;
      const size_t needed = column.semantic || view_.across_ranks ? 1 : 2;
      if (programs_in(rest & negative) < needed) return false;
    }
    return true;
  }

  bool asks_anchor(const Conjunction& tried, const std::vector<Literal>& literals) const {
    return view_.anchor < 0 ||
           std::any_of(
               tried.literals.begin(), tried.literals.end(),
               [&](size_t i) { return static_cast<int>(literals[i].column) == view_.anchor; });
  }

  void conclude(size_t column, uint32_t value, const std::string& text,
                std::vector<Invariant>& rules) const {
    PatternSet known(patterns_.size()), positive(patterns_.size());
    for (size_t i = 0; i < patterns_.size(); ++i) {
      if (patterns_[i].cells[column] == kUnknown) continue;
      known.insert(i);
      if (patterns_[i].cells[column] == value) positive.insert(i);
    }
    const PatternSet negative = known.without(positive);
    if (!supports(positive)) return;
    auto add = [&](const std::vector<size_t>& conditions, const std::vector<Literal>& literals,
                   const PatternSet& support) {
      Invariant rule;
      rule.view = view_.name;
      for (size_t i : conditions)
        rule.when.push_back({std::string(view_.columns[literals[i].column].name),
                             {texts_.text(literals[i].value)}});
      rule.then = {std::string(view_.columns[column].name), {text}};
      rule.tier = options_.one_program ? InvariantTier::program : InvariantTier::general;
      rule.relation = view_.columns[column].relation;
      rule.evidence = {static_cast<uint32_t>(programs_in(support)),
                       static_cast<uint32_t>(runs_in(support)), rows_in(support), rows_in(negative),
                       0};
      rule.id = invariant_id(rule);
      rule.says = invariant_words(rule, view_);
      rules.push_back(std::move(rule));
    };
    if (negative.empty() && view_.anchor < 0) return add({}, {}, positive);

    const std::vector<Literal> literals = literals_for(column, known);
    std::vector<Conjunction> safe, open = {{{}, known}};
    std::vector<std::vector<size_t>> minimal;  // safe ones, the accidents too
    for (size_t length = 1; length <= options_.most_literals; ++length) {
      std::vector<Conjunction> longer;
      for (const Conjunction& before : open) {
        const size_t first = before.literals.empty() ? 0 : before.literals.back() + 1;
        for (size_t i = first; i < literals.size(); ++i) {
          const bool again =
              std::any_of(before.literals.begin(), before.literals.end(),
                          [&](size_t j) { return literals[j].column == literals[i].column; });
          if (again) continue;
          Conjunction tried{before.literals, before.patterns & literals[i].patterns};
          tried.literals.push_back(i);
          const bool longer_than_needed =
              std::any_of(minimal.begin(), minimal.end(), [&](const std::vector<size_t>& kept) {
                return std::includes(tried.literals.begin(), tried.literals.end(), kept.begin(),
                                     kept.end());
              });
          if (longer_than_needed || !supports(tried.patterns & positive)) continue;
          const bool is_safe = !tried.patterns.meets(negative);
          if (is_safe && asks_anchor(tried, literals)) {
            minimal.push_back(tried.literals);
            if (is_no_accident(tried, literals, negative, known)) safe.push_back(std::move(tried));
          } else if (length < options_.most_literals && longer.size() < kMostOpen) {
            longer.push_back(std::move(tried));
          }
        }
      }
      open = std::move(longer);
    }
    // The widest first; one that covers nothing of its own is left out.
    std::stable_sort(safe.begin(), safe.end(), [&](const Conjunction& a, const Conjunction& b) {
      const size_t of_a = programs_in(a.patterns), of_b = programs_in(b.patterns);
      if (of_a != of_b) return of_a > of_b;
      const uint64_t rows_a = rows_in(a.patterns), rows_b = rows_in(b.patterns);
      if (rows_a != rows_b) return rows_a > rows_b;
      return a.literals.size() < b.literals.size();
    });
    PatternSet covered(patterns_.size());
    for (const Conjunction& rule : safe) {
      if (rule.patterns.without(covered).empty()) continue;
      covered |= rule.patterns;
      add(rule.literals, literals, rule.patterns & positive);
    }
  }

  const View& view_;
  const CellTexts& texts_;
  const MiningOptions& options_;
  std::vector<Pattern> patterns_;
  size_t need_ = 0;
};

bool meets_test(const CellTest& test, uint32_t cell, const CellTexts& texts) {
  return cell != kUnknown &&
         std::find(test.values.begin(), test.values.end(), texts.text(cell)) != test.values.end();
}

}  // namespace

std::vector<Invariant> mine(const PatternTable& table, const CellTexts& texts,
                            std::span<const View> views, const MiningOptions& options) {
  std::vector<Invariant> rules;
  for (size_t v = 0; v < views.size(); ++v)
    ViewMiner(views[v], table.patterns(v), texts, options).mine(rules);
  return rules;
}

Evidence evidence_of(const Invariant& rule, const PatternTable& table, const CellTexts& texts,
                     std::span<const View> views, std::vector<uint32_t>* breaking) {
  Evidence evidence;
  std::set<uint32_t> programs, runs, broken;
  for (size_t v = 0; v < views.size(); ++v) {
    if (views[v].name != rule.view || rule.between) continue;
    const size_t then = static_cast<size_t>(column_number(views[v], rule.then.column));
    for (const Pattern& pattern : table.patterns(v)) {
      if (pattern.rows == 0 || pattern.cells[then] == kUnknown) continue;
      const bool applies = std::all_of(rule.when.begin(), rule.when.end(), [&](auto& test) {
        return meets_test(test, pattern.cells[column_number(views[v], test.column)], texts);
      });
      const bool holds = meets_test(rule.then, pattern.cells[then], texts);
      if (!applies) {
        if (!holds) evidence.against += pattern.rows;
        continue;
      }
      evidence.rows += pattern.rows;
      programs.insert(pattern.programs.begin(), pattern.programs.end());
      runs.insert(pattern.runs.begin(), pattern.runs.end());
      if (!holds) broken.insert(pattern.programs.begin(), pattern.programs.end());
    }
  }
  evidence.programs = static_cast<uint32_t>(programs.size());
  evidence.runs = static_cast<uint32_t>(runs.size());
  evidence.breaking = static_cast<uint32_t>(broken.size());
  if (breaking) breaking->assign(broken.begin(), broken.end());
  return evidence;
}

}  // namespace opguard
