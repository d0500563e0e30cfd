// report/page_background.h: what the sources tell of a candidate, as a page has it.
//
//   numbers    where a number in the program's text may come from, way by way
//   suspects   statements that the two programs do not share, the nearest first
//
// Counterexample: what a source line holds beyond 400 columns is data, and is cut.
#pragma once

#include "nlohmann/json_fwd.hpp"
#include "report/background_text.h"

namespace opguard {

// Of a source line: data written into a source file.
inline constexpr uint32_t kLineColumns = 400;

// Adds members to a candidate.
void add_background(const Background& known, nlohmann::ordered_json& candidate);

}  // namespace opguard
