// report/terminal_tolerance.h: placements, layers, micro-batches and the worst ratios of a
// comparison within rounding. terminal_tolerance.cc has an example.
#pragma once

#include "report/terminal_lines.h"

namespace opguard {

void print_tolerance(TerminalLines& out);

}  // namespace opguard
