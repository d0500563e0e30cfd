// session/examine.h: what is run again once there is a verdict: the proof of the cause, and
// --drill, which looks into the pivot.
//
//   text      b with some of a's lines (exchange_text.h): a cause found so lies further back
//   values    b with a's tensors in place (prove.h)
//   text      the operator's own lines, where values prove nothing and no text was asked
//   drill     each run once more, with every ATen operator inside of the pivot written
//
// All but the drill share one budget, prove_runs. Counterexample: a program that has failed. It
// cannot be run again to prove anything, so callers pass no Examine then.
#pragma once

#include "session/exchange_text.h"
#include "session/report_verdict.h"
#include "session/side.h"

namespace opguard {

struct ExamineOptions {
  // At most so many further runs to prove what is the cause: docs/design/proof.md.
  uint32_t prove_runs = 0;
  // Runs a and b once more and records every ATen operator inside the pivot.
  bool drill = false;
  bool any() const { return prove_runs > 0 || drill; }
};

// By text alone: of a there is only the log and the sources, and it is not run again. At most
// `runs` runs of b.
Examine examine_by_text(uint32_t runs, const ExchangeText& text);

// None if nothing was asked for. text: what is known of both programs' texts.
Examine examine_with(const ExamineOptions& options, const GuardedProgram& a,
                     const GuardedProgram& b, const ExchangeText& text = {});

}  // namespace opguard
