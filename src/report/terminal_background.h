// report/terminal_background.h: what the sources tell of the pivot: where a number can come from,
// and which of their differences ran before it.
#pragma once

#include "report/terminal_lines.h"

namespace opguard {

// Where a number that differs can come from: the statement that set it, what that was made of.
void print_numbers(TerminalLines& out);
// What of the sources' difference ran before the pivot, the nearest first.
void print_suspects(TerminalLines& out);
// A further cause's nearest suspect, in a line.
void print_nearest_suspect(TerminalLines& out, size_t candidate);

}  // namespace opguard
