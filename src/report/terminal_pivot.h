// report/terminal_pivot.h: the operator where the runs part, or a finding of one run. It has its
// sources, what differs, what is known behind it, what stands around it. Then follow the other
// candidates.
#pragma once

#include "report/terminal_lines.h"

namespace opguard {

void print_pivot(TerminalLines& out, const char* title, const Pivot& pivot);
void print_candidates(TerminalLines& out);

}  // namespace opguard
