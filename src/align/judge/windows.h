// align/judge/windows.h: what logs that hold some steps of their runs can tell, and what they
// cannot.
//
//   a   steps 100 to 103      b   all steps      compared are 100 to 103, and a note says so
//
// A pivot is the first operator of all that were recorded. Where the runs held other parameters as
// a window began, an unrecorded step made them differ, and no operator of the window is at fault:
//
//   a   W = 9f31, step 100    b   W = 5d02, step 100      "the runs already differed as step 100
//                                                         began"
//
// What the window began with is what the optimizer finds at its end, and what the step's first
// reading of the same memory was. Counterexample: a weight that the step itself wrote was read
// before as it was in both runs, and the writer is named as ever.
//
// The cost: the slots of one step for each window that begins with other parameters; of equal runs
// none.
#pragma once

#include "align/judge/verdict.h"

namespace opguard {

// Notes for what was not recorded, and the verdict where that is the reason.
Verdict limit_by_windows(Verdict verdict, const Run& a, const Run& b, const Alignment& alignment);

}  // namespace opguard
