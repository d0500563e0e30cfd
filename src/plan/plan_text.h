// plan/plan_text.h: a plan as it is written.
//
// Equal plans give equal bytes, and one boundary is one line. So a diff of two commits shows which
// operators came and went, and git can merge what two people have changed.
//
// Counterexample: indented JSON. A boundary would be some thirty lines, and a diff would show a tag
// without its boundary.
#pragma once

#include <string>

#include "plan/plan.h"

namespace opguard {

// JSON as docs/formats/plan-format.md has it, one boundary a line: plans are committed, and their
// diffs read.
std::string plan_text(const Plan& plan);

}  // namespace opguard
