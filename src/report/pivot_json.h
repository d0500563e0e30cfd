// report/pivot_json.h: a candidate as the judgement named it: docs/formats/json.md.
#pragma once

#include "nlohmann/json.hpp"
#include "report/report.h"

namespace opguard {

// null: neither log has an event of it. Members of the pivot itself ("boundary" to "rank") are a's
// where a has the event, else b's.
nlohmann::ordered_json pivot_json(const Report& report, const Pivot& pivot);

}  // namespace opguard
