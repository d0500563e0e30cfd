// report/plan_proof.h: what `opguard prove` has found, for people and for programs
// (docs/formats/prove.md).
#pragma once

#include <string>

#include "nlohmann/json.hpp"
#include "prove/check.h"

namespace opguard {

std::string plan_proof_text(const proving::Captured& captured, const proving::Result& result);
nlohmann::json plan_proof_json(const proving::Captured& captured, const proving::Result& result);

}  // namespace opguard
