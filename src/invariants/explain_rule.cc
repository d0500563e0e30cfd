// The patterns of a rule's view in three heaps: they keep it, they break it, or they would without
// its conditions.
//
//   rule         held=yes: has_grad=yes
//   supporting   held=yes has_grad=yes
//   breaking     held=yes has_grad=no
//   outside      held=no  has_grad=no
//
// Counterexample: a row outside of the conditions that has the value anyway is in none of them. It
// speaks neither for the rule nor for its conditions.
#include "invariants/explain_rule.h"

#include <algorithm>
#include <map>
#include <set>

#include "invariants/compiled_rule.h"
#include "support/text.h"

namespace opguard {

namespace {

constexpr size_t kMostAlike = 8;

// One heap: patterns that differ in names alone are one line, with the rows and the runs of all of
// them.
class AlikeRows {
 public:
  AlikeRows(const RuleView& view, const CellTexts& texts) : view_(view), texts_(texts) {}

  void add(const Pattern& pattern) {
    RuleReasons::Alike alike;
    for (size_t c = 0; c < pattern.cells.size(); ++c)
      // Of each name there is a pattern: of 40 layers 40 lines that say the same.
      if (pattern.cells[c] != kUnknown && !view_.columns[c].names)
        alike.cells.push_back({std::string(view_.columns[c].name), texts_.text(pattern.cells[c])});
    auto& [rows, programs] = found_[alike.cells];
    rows += pattern.rows;
    for (const RunRows& run : pattern.runs) {
      programs.insert(run.program);
      RunRows& of =
          runs_.try_emplace({run.program, run.run}, RunRows{run.program, run.run, 0}).first->second;
      of.rows += run.rows;
    }
  }

  std::vector<RuleReasons::Alike> most() const {
    std::vector<RuleReasons::Alike> all;
    for (const auto& [cells, seen] : found_)
      all.push_back({cells, seen.first, {seen.second.begin(), seen.second.end()}});
    // Of equally many rows the order of the cells' texts decides: the map has it.
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& a, const auto& b) { return a.rows > b.rows; });
    if (all.size() > kMostAlike) all.resize(kMostAlike);
    return all;
  }

  std::vector<RunRows> runs() const {
    std::vector<RunRows> all;
    for (const auto& [numbers, run] : runs_) all.push_back(run);
    return all;
  }

 private:
  const RuleView& view_;
  const CellTexts& texts_;
  std::map<std::vector<std::pair<std::string, std::string>>,
           std::pair<uint64_t, std::set<uint32_t>>>
      found_;
  std::map<std::pair<uint32_t, uint32_t>, RunRows> runs_;
};

std::string rows_words(uint64_t rows) { return grouped(rows) + (rows == 1 ? " row" : " rows"); }

std::string named(const std::vector<std::string>& programs, uint32_t number) {
  return number < programs.size() ? shown(programs[number]) : "program " + std::to_string(number);
}

//   good_gpt: 3 runs, 1,402 rows
std::string runs_words(const std::vector<RunRows>& runs, const std::vector<std::string>& programs) {
  std::map<std::string, std::pair<uint32_t, uint64_t>> by_program;
  for (const RunRows& run : runs) {
    auto& [count, rows] = by_program[named(programs, run.program)];
    ++count;
    rows += run.rows;
  }
  std::string words;
  for (const auto& [name, seen] : by_program)
    words +=
        "  " + name + ": " + counted(seen.first, "run") + ", " + rows_words(seen.second) + "\n";
  return words;
}

//   rows that keep it
//     1,200 rows of 8 programs: requires_grad=yes held=yes has_grad=yes ...
//
// Up to three programs are named.
std::string alike_words(const std::string& head, const std::vector<RuleReasons::Alike>& all,
                        const std::vector<std::string>& programs) {
  if (all.empty()) return "";
  std::string words = head + "\n";
  for (const RuleReasons::Alike& alike : all) {
    words += "  " + rows_words(alike.rows) + " of ";
    if (alike.programs.size() <= 3)
      for (size_t i = 0; i < alike.programs.size(); ++i)
        words += (i ? ", " : "") + named(programs, alike.programs[i]);
    else
      words += counted(alike.programs.size(), "program");
    words += ":";
    for (const auto& [column, value] : alike.cells)
      words.append(" ").append(column).append("=").append(shown(value));
    words += "\n";
  }
  return words;
}

}  // namespace

RuleReasons explain_rule(const Invariant& rule, const PatternTable& table, const CellTexts& texts,
                         std::span<const RuleView> views) {
  RuleReasons reasons;
  const int v = view_number(views, rule.view);
  if (v < 0 || !unknown_in(rule, views).empty()) return reasons;
  const CompiledRule compiled = compile_rule(rule, views[v], texts);
  AlikeRows supporting(views[v], texts), outside(views[v], texts), breaking(views[v], texts);
  for (const Pattern& pattern : table.patterns(v)) {
    if (compiled.applies(pattern.cells))
      (compiled.breaks(pattern.cells) ? breaking : supporting).add(pattern);
    else if (!compiled.ranged && pattern.cells[compiled.then.column] != kUnknown &&
             !compiled.then.meets(pattern.cells))
      outside.add(pattern);
  }
  reasons.kept = supporting.runs();
  reasons.broken = breaking.runs();
  reasons.supporting = supporting.most();
  reasons.outside = outside.most();
  reasons.breaking = breaking.most();
  return reasons;
}

std::string reasons_words(const Invariant& rule, const RuleReasons& reasons,
                          const std::vector<std::string>& programs) {
  std::string words = rule.id + ": " + rule.says + "\n" + evidence_words(rule.evidence) + "\n";
  if (reasons.kept.empty()) return words + "no row of these runs meets it\n";
  words += "kept by\n" + runs_words(reasons.kept, programs);
  if (!reasons.broken.empty()) words += "broken by\n" + runs_words(reasons.broken, programs);
  words += alike_words("rows that keep it", reasons.supporting, programs);
  words += alike_words("rows that break it", reasons.breaking, programs);
  words +=
      alike_words("rows outside its conditions that have another value", reasons.outside, programs);
  return words;
}

}  // namespace opguard
