// report/terminal_proof.h: what running again found: docs/design/proof.md.
#pragma once

#include "report/terminal_lines.h"

namespace opguard {

// Of the pivot: its tensors byte by byte, whether it is proven, and what was asked.
void print_confirmation(TerminalLines& out);
// Whether a candidate is proven, and what it is beside other causes.
void print_found(TerminalLines& out, size_t candidate, const std::string& indent);
// Among the causes of the proof, proven or indicated.
bool is_cause(const Report& report, size_t candidate);
// --drill: the ATen operator inside the pivot.
void print_drill(TerminalLines& out);

}  // namespace opguard
