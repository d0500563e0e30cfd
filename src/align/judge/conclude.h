// align/judge/conclude.h: from two runs to the finished verdict, stage by stage.
//
//   settings     other seeds or kernels: inconclusive at once
//   align_runs   pairs, and what rules hide of them
//   judge        the pivot by value flow
//   findings     false alarms, recomputation, overwritten memory: notes; a race moves the pivot
//   end_early    a program that failed is not called identical
//   holes        what an incomplete log cannot bear out is taken back, last
//
// Counterexample: a failed run whose loss differed before it failed stays diverged. Its end is a
// note.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "align/judge/isolated.h"
#include "align/judge/verdict.h"
#include "align/pair/alignment.h"
#include "align/pair/settings.h"
#include "align/rules/hidden.h"

namespace opguard {

// How the programs of a and b failed ("exit code 1"), "" where they did not.
using Failures = std::array<std::string, 2>;

struct Conclusion {
  Alignment alignment;
  Verdict verdict;
  std::vector<IsolatedPair> isolated;
};

// `hidden` applies its rules to the alignment and counts what they did. Settings that refuse a
// comparison make it inconclusive before any. Heuristics `off` are not used.
Conclusion conclude(const Run& a, const Run& b, const SettingsReport& settings,
                    HiddenRecords& hidden, const Failures& failures, const Heuristics& off);

}  // namespace opguard
