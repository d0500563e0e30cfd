// preflight/control.h: determinism control, the part that is environment:
// docs/guide/determinism.md.
#pragma once

#include <cstdint>

#include "support/launch.h"

namespace opguard {

// What to add to the program's environment. Variables the user has set already keep their value.
Variables control_environment(uint64_t seed);

}  // namespace opguard
