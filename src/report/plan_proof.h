// report/plan_proof.h: what `opguard prove` has found, for people and for programs
// (docs/formats/prove.md).
#pragma once

#include <string>

#include "nlohmann/json.hpp"
#include "prove/check.h"
#include "prove/rules.h"

namespace opguard {

std::string plan_proof_text(const proving::Captured& captured, const proving::Result& result);
nlohmann::json plan_proof_json(const proving::Captured& captured, const proving::Result& result);
// Of `opguard prove --rules`.
std::string rules_text(const proving::RulesChecked& checked);

}  // namespace opguard
