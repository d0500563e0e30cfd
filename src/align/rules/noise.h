// align/rules/noise.h: what two runs of one program do differently by themselves, and rules that
// hide it: docs/guide/noise.md.
//
//   run 1   y = x.index_add(0, i, w)   z = y + 1   s = z.sum()      all three differ
//   run 2   y = x.index_add(0, i, w)   z = y + 1   s = z.sum()      one site: index_add
//
// A site is where noise begins: index_add has no fixed order here. What only reads it is none. The
// walk is the judgement's own (judge/value_flow.h), over all that differs and in both runs. Of a
// number the cause is told where both runs show it. One near the log's own start is a wall clock.
// One equal to the process's number is that.
//
// Counterexample: a loss that differs is noise as well, but no rule for it is ever written. The
// state of a generator that nobody draws from is shown as idle, not as noise.
#pragma once

#include <string>
#include <vector>

#include "align/judge/verdict.h"
#include "align/rules/rules.h"

namespace opguard {

// Records of one boundary that differ though nothing before them did.
struct NoiseSite {
  Pivot pivot;         // the first execution
  Rule rule;           // names these records and no others; why: pivot.why in words
  uint64_t times = 0;  // executions that differ
  // What the runs are judged by: a rule for it is never written.
  bool model_value = false;
  // The state of a generator that nobody draws from: no noise, only noisy to look at.
  bool idle = false;
};

// Earliest first; generators' states last.
std::vector<NoiseSite> find_noise(const Run& a, const Run& b, const Alignment& alignment);

// Numbers handed to Python (`.item()`) that differ and that no rule hides yet. `alignment` as
// HiddenRecords::apply left it.
std::vector<NoiseSite> noisy_numbers(const Run& a, const Run& b, const Alignment& alignment);

}  // namespace opguard
