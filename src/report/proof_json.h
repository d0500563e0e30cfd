// report/proof_json.h: what running again proved, and --drill: docs/design/proof.md ("JSON").
#pragma once

#include "nlohmann/json.hpp"
#include "report/report.h"

namespace opguard {

nlohmann::ordered_json proof_json(const Report& report);
nlohmann::ordered_json drill_json(const Drill& drill);

}  // namespace opguard
