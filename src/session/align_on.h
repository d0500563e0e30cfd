// session/align_on.h: a comparison whose parts are made by workers: threads of this machine, or a
// Ray cluster.
//
//   opguard align A B --on ray --parts 64      64 tasks, then one verdict, as --merge gives it
//
// Who has the workers is python/opguard/on_workers.py. Counterexample: no Ray, or logs that a
// worker cannot see. It is said which parts are missing, and their ranks stay open.
#pragma once

#include "session/align_part.h"

namespace opguard {

// Prints the verdict. The exit code is that of align.
int align_on(const PartOptions& opt);

}  // namespace opguard
