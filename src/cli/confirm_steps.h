// cli/confirm_steps.h: --confirm: the runs that prove a candidate causal or harmless.
#pragma once

#include "cli/side.h"
#include "cli/verdict_steps.h"

namespace opguard {

// Runs a and b once more to write the candidates' tensors, then b with a's values put in place, for
// one candidate after the other until one is proven causal: that becomes the pivot.
Examine confirm_with(const GuardedProgram& a, const GuardedProgram& b);

}  // namespace opguard
