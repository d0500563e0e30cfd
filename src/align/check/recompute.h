// align/check/recompute.h: does what activation checkpointing runs again give what it gave first?
//
//   forward      h = norm(x)    d = dropout(h)    y = linear(d)
//   backward     h = norm(x)    d' = dropout(h)   y' = linear(d')     dropout: other numbers
//
// One run is enough: each operator of phase recompute has a first execution in the forward pass of
// the same step. Only the first that does not reproduce it is a finding; linear follows from it.
//
// Counterexample: an early stop ends the recomputation by an exception, once all that is wanted is
// there. The last operator has no result then, and its random numbers are compared in place of it.
//
// The cost: nothing in a log without recomputation. Else each operator run again is held against
// its first executions in the step, the nearest first. docs/design/judgement.md, "Recomputation".
#pragma once

#include <vector>

#include "align/judge/verdict.h"

namespace opguard {

// The first operator of a recomputed stretch that does not reproduce its forward.
struct RecomputeFinding {
  PivotKind kind = PivotKind::value;
  EventRef forward, recompute;  // of the same run
  uint32_t slot = kNone;  // index in ProcessLog::slots of the recomputation's first that differs
  uint64_t times = 1;     // stretches in which this boundary was the first
  Reason why{};
};

struct RecomputeCheck {
  uint64_t recomputed = 0;                 // operators run again
  uint64_t compared = 0;                   // of them, those whose first execution was found
  std::vector<RecomputeFinding> findings;  // one a boundary, in the order of the run
};

RecomputeCheck check_recompute(const Run& run);

// Notes on what either run does not reproduce, and a word in `why` of the candidates it is behind.
void add_recompute_findings(const Run& a, const Run& b, Verdict& verdict);

}  // namespace opguard
