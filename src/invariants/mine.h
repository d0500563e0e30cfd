// invariants/mine.h: patterns of good runs -> the rules that all of them keep.
//
//   40 programs     general rules, that name nothing of one program, and usual ones
//   one program     its own rules, that may say which parameter
//
// A rule that a good program breaks is none. One that only one of ten breaks is "usual": told,
// and an error of nobody. Counterexample: no rule is of one run of many programs.
//
// The result depends on the rows alone, not on the order of logs, of threads, or on the numbers
// that texts, programs and runs have.
//
// The cost: of patterns (safe_conditions.h). Rows cost nothing here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "invariants/invariant.h"
#include "invariants/pattern_table.h"

namespace opguard {

struct MiningOptions {
  uint32_t min_programs = 3;  // of rules for all programs; 2 where fewer have such rows
  // A rule of fewer rows is none, whoever keeps it.
  uint32_t min_rows = 2;
  // All runs are of one program: its names may be used, and nothing else is found.
  bool one_program = false;
  // Conditions of a rule, besides the anchor's.
  size_t most_literals = 3;
};

inline constexpr uint32_t kUsualPrograms = 10;  // of which one may break a usual rule

// By view, then by column and value as texts.
std::vector<Invariant> mine(const PatternTable& table, const CellTexts& texts,
                            std::span<const RuleView> views, const MiningOptions& options);

// Runs that break rules which all others keep, with how many: those of at least five. Of a program
// with one run alone only rules count that half of all runs meet: a program may be unusual.
struct SuspectRun {
  // `rules`: how many it breaks alone. Of a column and several conditions they are one.
  uint32_t program = 0, run = 0, rules = 0;
};
std::vector<SuspectRun> suspect_runs(const PatternTable& table, const CellTexts& texts,
                                     std::span<const RuleView> views);

}  // namespace opguard
