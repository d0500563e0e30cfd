// determinism/variables.h: who has set a variable of the environment, and with what.
#pragma once

#include <string>

#include "determinism/facts.h"
#include "determinism/finding.h"

namespace opguard {

// A row about the variable, as far as it is known: value "" where nobody has set it.
// `hold` is `left` and `ground` is `unset` where nobody has set it: most callers then tell nothing
// of it.
Finding variable_finding(const ProcessFacts& process, Surface surface, const std::string& name);

}  // namespace opguard
