// confirm/exchanged.h: what a re-run of b with text of a in place says: docs/design/proof.md.
#pragma once

#include "confirm/confirm.h"

namespace opguard {

// again: run b once more, made by a program with other text. Healed: every model value up to the
// end of the judged step is run a's. Unchanged: the first that differs is not, nor is any before it
// run a's. Changed: a later one differs. Unknown: the re-run did not come there, or could not be
// compared. `healed` asks as well that the operator the pivot names in run a does the same now:
// another text's change may hide what it does.
Outcomes judge_exchanged(const Comparands& first, const Pivot& pivot, const Run& again);

}  // namespace opguard
