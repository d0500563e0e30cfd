// invariants/mine.h: patterns of good runs -> the rules that all of them keep.
//
//   conclusion has_grad=yes: 40 patterns have it, 6 have not
//   held=yes                 none of the 6 has it: a rule; longer conditions with it are not tried
//   requires_grad=yes        2 of the 6 have it: no rule, tried with a second condition
//
// Minimal safe conjunctions, breadth first, as TrainCheck's preconditions (Jiang et al., OSDI 2025)
// but from counted patterns instead of rows. A condition of a rule for all programs must be needed
// by counterexamples of two programs, or of one where its column's meaning is known: else it is an
// accident of one program.
//
// The cost of a conclusion: literals^3 times patterns / 64 word operations at worst. Rows cost
// nothing here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "invariants/invariant.h"
#include "invariants/pattern_table.h"

namespace opguard {

struct MiningOptions {
  uint32_t min_programs = 3;  // of rules for all programs
  uint32_t min_rows = 2;
  // All runs are of one program: its names may be used, and nothing else is found.
  bool one_program = false;
  size_t most_literals = 3;
};

// In the order of views, then of columns and values by their texts: whatever the order of the
// logs, the same rules.
std::vector<Invariant> mine(const PatternTable& table, const CellTexts& texts,
                            std::span<const View> views, const MiningOptions& options);

// A rule's evidence by these rows. `breaking`: programs in which a row breaks it.
Evidence evidence_of(const Invariant& rule, const PatternTable& table, const CellTexts& texts,
                     std::span<const View> views, std::vector<uint32_t>* breaking = nullptr);

}  // namespace opguard
