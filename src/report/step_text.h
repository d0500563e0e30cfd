// report/step_text.h: which steps of the two runs are the same, and what one of them runs besides.
#pragma once

#include <string>
#include <vector>

#include "report/report.h"

namespace opguard {

// The pairs of processes whose steps are not paired by number: the first of each kind.
std::vector<const ProcessPair*> paired_otherwise(const Alignment& alignment);

// "step 0 of run b is step 3 of run a; run a makes 3 steps besides (0 to 2)". None where steps are
// the same by number.
std::vector<std::string> step_sentences(const Alignment& alignment);

}  // namespace opguard
