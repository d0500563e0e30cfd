// preflight/control.h: determinism control, the part that is environment:
// docs/guide/determinism.md.
//
//   control_environment(17)    OPGUARD_DETERMINISTIC=17, PYTHONHASHSEED=0, ...,
//                              OPGUARD_CONTROLLED=PYTHONHASHSEED,CUBLAS_WORKSPACE_CONFIG,...
//
// OPGUARD_CONTROLLED names those that are ours, so that a report can tell them from the user's.
// Counterexample: torch.use_deterministic_algorithms(). It is no variable; the program's own
// process calls it.
#pragma once

#include <cstdint>

#include "support/launch.h"

namespace opguard {

// What to add to the program's environment. Variables the user has set already keep their value.
Variables control_environment(uint64_t seed);

}  // namespace opguard
