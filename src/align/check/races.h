// align/check/races.h: memory that was overwritten in one run, as a reason why two runs part.
//
//   worker thread   ring[k].copy_(batch)     unseen, while the step still reads ring[k]
//   main thread     loss = model(ring[k])    reads other bytes than the loader left: a race
#pragma once

#include "align/judge/verdict.h"

namespace opguard {

// Notes on what was overwritten in either run. A candidate whose operator read such bytes becomes
// a race: the notes and its `why` say so. Where another thread ran meanwhile, the pivot is the
// first use of that memory.
void add_overwritten_findings(const Run& a, const Run& b, const Alignment& alignment,
                              Verdict& verdict);

}  // namespace opguard
