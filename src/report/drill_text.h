// report/drill_text.h: what --drill found, in words: docs/design/proof.md.
#pragma once

#include <string>

#include "confirm/drill.h"

namespace opguard {

// One sentence: the ATen operator that differs, that none does, or why nothing is known.
std::string words(const Drill& drill);

// "value", as JSON has it; "" of none.
const char* drill_name(DrillKind kind);

}  // namespace opguard
