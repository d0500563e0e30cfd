// report/sarif.h: the verdict as annotations of the sources, SARIF 2.1.0.
//
//   --sarif out.sarif    a review shows "The two runs stop being bit-identical at ..." at the line
//
// Counterexample: "identical" has no result. SARIF speaks of places, and there is none to look at;
// the verdict itself is in `properties`.
#pragma once

#include <string>

#include "report/report.h"

namespace opguard {

// One result a candidate: the pivot an error, the others notes. Their place is side b's, where it
// has one; the other side's is a related location.
std::string format_sarif(const Report& report);

}  // namespace opguard
