// confirm/exchanged.h: what a re-run of b with text of a in place says: docs/proof.md.
#pragma once

#include <string>

#include "confirm/confirm.h"

namespace opguard {

// again: run b once more, made by a program with other text. healed: every model value up to the
// end of the judged step is run a's; unchanged: one is not; unknown: the re-run did not come there.
Outcomes judge_exchanged(const Comparands& first, const Run& again);

}  // namespace opguard
