// session/prove.h: the runs that prove what is the cause: docs/design/proof.md.
#pragma once

#include "session/report_verdict.h"
#include "session/side.h"

namespace opguard {

// At most `runs` further runs. Puts the causes first among the verdict's candidates, in their
// order.
Examined prove(const GuardedProgram& a, const GuardedProgram& b, const Run& run_a, const Run& run_b,
               const Alignment& alignment, Verdict& verdict, uint32_t runs);

}  // namespace opguard
