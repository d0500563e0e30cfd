// report/plan_proof.h: what `opguard prove` has found, for people and for programs
// (docs/formats/prove.md).
//
//   proved     what was compared, and what the proof rests on
//   refuted    an output, numbers that tell plan and model apart, the statements that made them
//   unknown    why: an operator without a meaning, say, and where it stands
//
// Four forms have the same words, from plan_proof_words.h: a terminal's text, JSON, a page, SARIF.
#pragma once

#include <string>

#include "nlohmann/json.hpp"
#include "prove/check.h"
#include "prove/rules.h"
#include "report/identity.h"

namespace opguard {

std::string plan_proof_text(const proving::Captured& captured, const proving::Result& result);
// Members that not every verdict has are left out where they say nothing. "thin" and "not_compared"
// are empty lists then.
nlohmann::json plan_proof_json(const proving::Captured& captured, const proving::Result& result);

// What a page and SARIF say beside that.
struct PlanProof {
  const proving::Captured& captured;
  const proving::Result& result;
  std::string tree;  // absolute; names of files below it are relative
  Identity identity = identity_now();
};
std::string format_plan_proof_html(const PlanProof& proof);
std::string format_plan_proof_sarif(const PlanProof& proof);

// Of `opguard prove --rules`.
std::string rules_text(const proving::RulesChecked& checked);

}  // namespace opguard
