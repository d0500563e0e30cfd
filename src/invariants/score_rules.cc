// Rules against the patterns of good runs: each rule once over the patterns of its view.
//
//   rule      held=yes: has_grad=yes
//   rows      42 of 21 programs keep it, 3 of program 4 break it
//             7 of program 5 have held=no and has_grad=no
//   evidence  21 programs, 45 rows, 7 against, 1 breaking; GoodBreaker{id, 4, 3}
//   severity  as written: one of 21 is no more than one of 20. A second breaker, and it is a note.
//
// `against` counts rows outside the conditions with another value: they are why the conditions
// stand there.
//
// The cost: rules times patterns; a rule that is broken is gone through twice.
#include "invariants/score_rules.h"

#include <algorithm>
#include <map>
#include <set>

#include "invariants/compiled_rule.h"

namespace opguard {

namespace {

constexpr uint32_t kOneOf = 20;  // programs may break a rule that is an error

// Is each test of `few` implied by one of `many`? "dtype in float32, bfloat16" is by "dtype is
// float32". A negated one is implied by nothing here, which only keeps a rule too many.
bool is_subset(const std::vector<CellTest>& few, const std::vector<CellTest>& many) {
  return std::ranges::all_of(few, [&](const CellTest& test) {
    return std::ranges::any_of(many, [&](const CellTest& other) {
      return other.column == test.column && !test.negated && !other.negated &&
             std::ranges::all_of(other.values, [&](const std::string& value) {
               return std::ranges::find(test.values, value) != test.values.end();
             });
    });
  });
}

// The first one is as severe, and applies wherever the second one does.
bool says_more(const Invariant& written, const Invariant& found) {
  return written.view == found.view && !written.between && !found.between &&
         written.then == found.then && written.severity <= found.severity &&
         is_subset(written.when, found.when);
}

}  // namespace

RuleEvidence evidence_of(const Invariant& rule, const PatternTable& table, const CellTexts& texts,
                         std::span<const RuleView> views, std::vector<uint32_t>* breaking) {
  RuleEvidence evidence;
  const int v = view_number(views, rule.view);
  // Of a range nothing is counted: patterns have no numbers.
  if (v < 0 || rule.between || !unknown_in(rule, views).empty()) return evidence;
  const CompiledRule compiled = compile_rule(rule, views[v], texts);
  // Of no use where the view has none, so -1 is asked for first.
  const auto anchor = static_cast<size_t>(views[v].anchor);
  std::set<uint32_t> programs, runs, broken;
  for (const Pattern& pattern : table.patterns(v)) {
    if (pattern.cells[compiled.then.column] == kUnknown) continue;
    if (!compiled.meets(pattern.cells)) {
      // Of another call it says nothing.
      const bool of_anchor = std::ranges::all_of(compiled.when, [&](const CompiledTest& test) {
        return views[v].anchor < 0 || test.column != anchor || test.meets(pattern.cells);
      });
      if (of_anchor && !compiled.then.meets(pattern.cells)) evidence.against += pattern.rows;
      continue;
    }
    evidence.rows += pattern.rows;
    const bool breaks = compiled.breaks(pattern.cells);
    for (const RunRows& run : pattern.runs) {
      programs.insert(run.program);
      runs.insert(run.run);
      if (breaks) broken.insert(run.program);
    }
  }
  // A written rule was made from none of them: all are held out.
  evidence.programs = evidence.held_out = static_cast<uint32_t>(programs.size());
  evidence.runs = static_cast<uint32_t>(runs.size());
  evidence.breaking = static_cast<uint32_t>(broken.size());
  if (breaking) breaking->assign(broken.begin(), broken.end());
  return evidence;
}

// Rules come back in their order, all of them, also those that no row meets.
ScoredRules score_rules(std::vector<Invariant> written, const PatternTable& table,
                        const CellTexts& texts, std::span<const RuleView> views) {
  ScoredRules scored;
  for (Invariant& rule : written) {
    rule.evidence = evidence_of(rule, table, texts, views);
    if (rule.evidence.breaking) {
      const int v = view_number(views, rule.view);
      const CompiledRule compiled = compile_rule(rule, views[v], texts);
      std::map<uint32_t, uint64_t> rows;
      for (const Pattern& pattern : table.patterns(v))
        if (compiled.breaks(pattern.cells))
          for (const RunRows& run : pattern.runs) rows[run.program] += run.rows;
      for (const auto& [program, count] : rows)
        scored.breakers.push_back({rule.id, program, count});
      if (rule.evidence.breaking * kOneOf > rule.evidence.programs)
        rule.severity = InvariantSeverity::note;
    }
    scored.rules.push_back(std::move(rule));
  }
  return scored;
}

// A written rule that scoring made a note does not hide a found one: says_more() compares the
// severities.
std::vector<Invariant> join_rules(std::vector<Invariant> written,
                                  const std::vector<Invariant>& found) {
  const size_t count = written.size();
  for (const Invariant& rule : found) {
    const bool said =
        std::any_of(written.begin(), written.begin() + static_cast<ptrdiff_t>(count),
                    [&](const Invariant& w) { return w.id == rule.id || says_more(w, rule); });
    if (!said) written.push_back(rule);
  }
  return written;
}

}  // namespace opguard
