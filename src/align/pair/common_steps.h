// align/pair/common_steps.h: two logs of other windows, cut to the steps that both have.
//
//   a   steps 100 to 103          left: 102, 103
//   b   steps 102 to 110          left: 102, 103
//
// What is left out is no difference: its run made the step, or the other one did, and nobody
// recorded it there. So no walk leads into it. Occurrences are counted anew.
// Counterexample: a run that ended at step 103 by itself. Its log's window goes on, so the other
// run's step 104 is one that it does not make.
//
// The cost: the events of a cut log are copied, 112 bytes each; logs of equal windows stay.
#pragma once

#include "align/pair/steps.h"

namespace opguard {

// Nothing is done where no step is common (have_common_steps).
void cut_to_common_steps(Run& a, Run& b);

}  // namespace opguard
