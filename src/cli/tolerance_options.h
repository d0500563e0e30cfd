// cli/tolerance_options.h: --tolerance and what belongs to it.
#pragma once

#include "CLI/CLI.hpp"
#include "session/tolerance.h"

namespace opguard {

// --tolerance, --perturb, --jitter-seed, --factor.
void add_tolerance_options(CLI::App& command, ToleranceRuns& runs);

}  // namespace opguard
