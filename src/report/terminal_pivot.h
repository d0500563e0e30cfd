// report/terminal_pivot.h: the operator where the runs part, or a finding of one run. It has its
// sources, what differs, what is known behind it, what stands around it. Then follow the other
// candidates.
//
//   pivot: value in rope.mul:q7k2, forward, step 0, micro-batch 0, rank 0, slot out0
//     every tensor and scalar input is equal, the result is not
//     a model/rope.py:15:22: in rotate
//         x1 * cos
//         ^~~~~~~~
//     what differs                             terminal_differences.h
//     where ... can come from, suspects        terminal_background.h, of the pivot alone
//     proven: ...                              terminal_proof.h, of the pivot alone
#pragma once

#include "report/terminal_lines.h"

namespace opguard {

void print_pivot(TerminalLines& out, const char* title, const Pivot& pivot);
void print_candidates(TerminalLines& out);

}  // namespace opguard
