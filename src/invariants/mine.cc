// From conditions that are safe to rules: which conclusions are tried, and which of what is found
// is kept.
//
//   view parameter   each value of each column that may be concluded: has_grad=yes, has_grad=no
//   view sequence    the same, once for each name of a call, which is its anchor
//   each of them     ConditionSearch::all(), then decision_list(), then a rule for each of these
//
// Both values of a column are tried. "not changed" of a frozen layer is as good a rule as "changed"
// of a trained one.
//
// Counterexample: no rule is made of a view whose anchor holds names, where there are several
// programs. A rule of the function generate() says nothing of a program that has none.
//
// The cost: conclusions times anchors times the search (safe_conditions.h). A view is read from its
// patterns once.
#include "invariants/mine.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "invariants/number_ranges.h"
#include "invariants/safe_conditions.h"

namespace opguard {

namespace {

// A run that breaks fewer is not named: by chance a good run breaks one.
constexpr uint32_t kSuspectRules = 5;

// What is concluded, and the anchor that it is concluded for: since_last:step=yes, for
// call=backward.
struct Conclusion {
  ColumnValue then;
  std::optional<ColumnValue> anchor;
};

std::vector<Conclusion> conclusions_of(const ConditionSearch& search, const RuleView& view,
                                       bool with_names) {
  std::vector<std::optional<ColumnValue>> anchors;
  if (view.anchor < 0) {
    anchors.push_back(std::nullopt);
  } else if (with_names || !view.columns[view.anchor].names) {
    const auto column = static_cast<uint32_t>(view.anchor);
    for (uint32_t value : search.values(column)) anchors.push_back(ColumnValue{column, value});
  }
  std::vector<Conclusion> found;
  for (const auto& anchor : anchors)
    for (uint32_t c = 0; c < view.columns.size(); ++c)
      if (view.columns[c].concluded && static_cast<int>(c) != view.anchor)
        for (uint32_t value : search.values(c)) found.push_back({{c, value}, anchor});
  return found;
}

// Voters that break it and nowhere keep it. A program may do both in different rows; it is counted
// once then, as one that keeps it.
uint32_t breaking_alone(const SafeConditions& safe) {
  return static_cast<uint32_t>(std::ranges::count_if(safe.breaking, [&](uint32_t voter) {
    return !std::ranges::binary_search(safe.voters, voter);
  }));
}

Invariant rule_of(const SafeConditions& safe, ColumnValue then, const RuleView& view,
                  const CellTexts& texts) {
  auto test_of = [&](ColumnValue asked) {
    return CellTest{std::string(view.columns[asked.column].name), {texts.text(asked.value)}};
  };
  Invariant rule;
  rule.view = view.name;
  for (const ColumnValue& asked : safe.when) rule.when.push_back(test_of(asked));
  rule.then = test_of(then);
  rule.relation = view.columns[then.column].relation;
  rule.evidence = {.programs = static_cast<uint32_t>(safe.voters.size()),
                   .runs = static_cast<uint32_t>(safe.runs.size()),
                   .rows = safe.rows,
                   .against = safe.against,
                   .breaking = static_cast<uint32_t>(safe.breaking.size()),
                   // One that breaks it was no reason to make it.
                   .held_out = safe.held_out + breaking_alone(safe)};
  rule.id = invariant_id(rule);
  rule.says = invariant_words(rule, view);
  return rule;
}

// All voters that it is about.
uint32_t voters_with_breaking(const SafeConditions& safe) {
  return static_cast<uint32_t>(safe.voters.size()) + breaking_alone(safe);
}

class ViewMiner {
 public:
  ViewMiner(const RuleView& view, const std::vector<Pattern>& patterns, const CellTexts& texts,
            const MiningOptions& options)
      : view_(view),
        texts_(texts),
        options_(options),
        voted_(voted_patterns(view, patterns, options.one_program ? VoteOf::run : VoteOf::program,
                              options.one_program)),
        search_(voted_, texts) {}

  // Rules that nobody breaks; behind them, conclusion by conclusion, those that one of ten or more
  // breaks.
  void mine(std::vector<Invariant>& rules) const {
    if (voted_.patterns.empty()) return;
    for (const Conclusion& conclusion : conclusions_of(search_, view_, options_.one_program)) {
      for (const SafeConditions& safe :
           decision_list(search_.all(conclusion.then, conclusion.anchor, limits())))
        if (safe.rows >= options_.min_rows) add(safe, conclusion.then, rules);
      if (!options_.one_program && voted_.voters >= kUsualPrograms) add_usual(conclusion, rules);
    }
  }

 private:
  // A rule is of two runs at least where there are two, of two programs at least always.
  // Of one run alone everything it keeps is a rule, by chance too: infer.cc warns of that.
  SearchLimits limits() const {
    SearchLimits limits{.most_literals = options_.most_literals};
    if (options_.one_program)
      limits.least_voters = limits.least_against = std::min(2u, std::max(1u, voted_.voters));
    else
      limits.least_voters =
          voted_.voters < options_.min_programs ? 2 : std::max(2u, options_.min_programs);
    return limits;
  }

  void add(const SafeConditions& safe, ColumnValue then, std::vector<Invariant>& rules) const {
    Invariant rule = rule_of(safe, then, view_, texts_);
    rule.tier = options_.one_program ? InvariantTier::program : InvariantTier::general;
    // infer.cc looks once more, by how many programs keep it.
    rule.severity = InvariantSeverity::warning;
    if (options_.one_program) {
      rule.evidence.programs = 1;
      if (rule.evidence.runs >= 2) rule.severity = InvariantSeverity::error;
    }
    rules.push_back(std::move(rule));
  }

  // One condition at most: with more of them almost any single program can be told apart.
  void add_usual(const Conclusion& conclusion, std::vector<Invariant>& rules) const {
    const SearchLimits limits{
        .least_voters = kUsualPrograms - 1, .most_literals = 1, .most_breaking = 1};
    std::vector<SafeConditions> found = search_.all(conclusion.then, conclusion.anchor, limits);
    // The search also gives what nobody breaks; that is a rule already.
    std::erase_if(found, [&](const SafeConditions& safe) {
      return safe.breaking.size() != 1 || voters_with_breaking(safe) < kUsualPrograms ||
             safe.rows < options_.min_rows;
    });
    for (const SafeConditions& safe : decision_list(std::move(found))) {
      Invariant rule = rule_of(safe, conclusion.then, view_, texts_);
      rule.tier = InvariantTier::usual;
      rule.severity = InvariantSeverity::note;
      rules.push_back(std::move(rule));
    }
  }

  const RuleView& view_;
  const CellTexts& texts_;
  const MiningOptions& options_;
  const VotedPatterns voted_;
  const ConditionSearch search_;
};

}  // namespace

std::vector<Invariant> mine(const PatternTable& table, const CellTexts& texts,
                            std::span<const RuleView> views, const MiningOptions& options) {
  std::vector<Invariant> rules;
  for (size_t v = 0; v < views.size(); ++v) {
    ViewMiner(views[v], table.patterns(v), texts, options).mine(rules);
    add_ranges(views[v], table.numbers(v), texts, options.one_program, rules);
  }
  return rules;
}

std::vector<SuspectRun> suspect_runs(const PatternTable& table, const CellTexts& texts,
                                     std::span<const RuleView> views) {
  std::map<uint32_t, uint32_t> program_of, rules, runs_of;
  for (size_t v = 0; v < views.size(); ++v)
    for (const Pattern& pattern : table.patterns(v))
      for (const RunRows& run : pattern.runs) program_of[run.run] = run.program;
  for (const auto& [run, program] : program_of) ++runs_of[program];
  // How many runs a rule has to be about.
  // Of six runs of three programs: three runs. Of 25 runs where this one is its program's only one:
  // twelve.
  auto least_runs = [&](uint32_t run) {
    return std::max<size_t>(3, runs_of[program_of[run]] > 1 ? 3 : program_of.size() / 2);
  };
  for (size_t v = 0; v < views.size(); ++v) {
    const VotedPatterns voted = voted_patterns(views[v], table.patterns(v), VoteOf::run, false);
    if (voted.voters < 3) continue;
    const ConditionSearch search(voted, texts);
    // The two values of a column, and several conditions, are one rule here.
    std::set<std::pair<uint32_t, uint32_t>> counted;
    for (const Conclusion& conclusion : conclusions_of(search, views[v], false)) {
      const SearchLimits limits{.least_voters = 2, .most_literals = 1, .most_breaking = 1};
      for (const SafeConditions& safe : search.all(conclusion.then, conclusion.anchor, limits))
        if (safe.breaking.size() == 1 &&
            voters_with_breaking(safe) >= least_runs(safe.breaking[0]) &&
            counted.insert({safe.breaking[0], conclusion.then.column}).second)
          ++rules[safe.breaking[0]];
    }
  }
  std::vector<SuspectRun> found;
  for (const auto& [run, broken] : rules)
    if (broken >= kSuspectRules) found.push_back({program_of[run], run, broken});
  return found;
}

}  // namespace opguard
