// cli/confirm_steps.h: --confirm and --drill: the runs that prove a candidate causal or harmless,
// and those that look into the pivot.
#pragma once

#include "cli/side.h"
#include "cli/verdict_steps.h"

namespace opguard {

struct ExamineOptions {
  // Runs a and b once more to write the candidates' tensors, then b with a's values put in place,
  // for one candidate after the other until one is proven causal: that becomes the pivot.
  bool confirm = false;
  // Runs a and b once more and records every ATen operator inside the pivot.
  bool drill = false;
  bool any() const { return confirm || drill; }
};

// --confirm, --drill.
void add_examine_options(CLI::App& command, ExamineOptions& options);

// Neither if nothing was asked for.
Examine examine_with(const ExamineOptions& options, const GuardedProgram& a,
                     const GuardedProgram& b);

}  // namespace opguard
