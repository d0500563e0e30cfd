// report/tolerance_json.h: a comparison within rounding, as docs/formats/json.md has it.
#pragma once

#include "nlohmann/json.hpp"
#include "report/report.h"

namespace opguard {

// Member "tolerance" of a report; null where none was made.
nlohmann::ordered_json tolerance_json(const Report& report);

// Members "error" and "placement" of a pivot that is about a tensor.
void add_tolerance(nlohmann::ordered_json& json, const Report& report, const Pivot& pivot);

}  // namespace opguard
