// cli/examine_steps.h: what is run again once there is a verdict: the proof of the cause, and
// --drill, which looks into the pivot.
#pragma once

#include "cli/exchange_steps.h"
#include "cli/side.h"
#include "cli/verdict_steps.h"

namespace opguard {

struct ExamineOptions {
  // At most so many further runs to prove what is the cause: docs/proof.md.
  uint32_t prove_runs = 0;
  // Runs a and b once more and records every ATen operator inside the pivot.
  bool drill = false;
  bool any() const { return prove_runs > 0 || drill; }
};

// --prove-runs, --no-prove, --drill. runs: how many where nothing is said.
void add_examine_options(CLI::App& command, ExamineOptions& options, uint32_t runs);

// None if nothing was asked for. text: what is known of both programs' texts.
Examine examine_with(const ExamineOptions& options, const GuardedProgram& a,
                     const GuardedProgram& b, const ExchangeText& text = {});

}  // namespace opguard
