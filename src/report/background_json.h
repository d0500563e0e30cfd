// report/background_json.h: what may stand behind a candidate: docs/formats/json.md.
#pragma once

#include "nlohmann/json.hpp"
#include "report/report.h"

namespace opguard {

nlohmann::ordered_json suspects_json(const Report& report, const Background& background);
nlohmann::ordered_json numbers_json(const Report& report, const Background& background);

}  // namespace opguard
