// fleet/fleet_text.h: the verdict of a fleet in words, and as JSON (docs/formats/parts.md).
//
//   diverged: it began on rank 5
//     8 ranks, 12 steps, 40,312 records a run; 9,120 pairs certified equal
//
// The JSON lists every rank that is not equal; of lines for people there is a limit.
#pragma once

#include <string>

#include "fleet/merge_parts.h"

namespace opguard {

// Of thousands of lines the first kMostLines (fleet_lines.h) are shown.
std::string format_fleet(const Part& all, const FleetVerdict& verdict);
std::string format_fleet_json(const Part& all, const FleetVerdict& verdict);

}  // namespace opguard
