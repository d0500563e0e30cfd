// report/terminal_alignment.h: how far the runs are certified equal, and how they were paired.
#pragma once

#include "report/terminal_lines.h"

namespace opguard {

void print_certificate(TerminalLines& out);
// --explain: how the events were paired.
void print_pairing(TerminalLines& out);

}  // namespace opguard
