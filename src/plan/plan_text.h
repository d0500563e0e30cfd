// plan/plan_text.h: a plan as it is written.
#pragma once

#include <string>

#include "plan/plan.h"

namespace opguard {

// JSON as docs/formats/plan-format.md has it, one boundary a line: plans are committed, and their
// diffs read.
std::string plan_text(const Plan& plan);

}  // namespace opguard
