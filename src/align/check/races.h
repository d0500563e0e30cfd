// align/check/races.h: memory that was overwritten in one run, as a reason why two runs part.
//
//   worker thread   ring[k].copy_(batch)     unseen, while the step still reads ring[k]
//   main thread     loss = model(ring[k])    reads other bytes than the loader left: a race
//
// Which reader is the first to see other bytes is chance, and another one in the next run. So the
// pivot is moved to the first use of that memory, from where it should have been left alone. What
// saw the other bytes is the candidate behind it, and what is forced for it (Pivot::shown).
//
// Counterexample: without another thread in that time the pivot stays. There the program's own
// order of operators overwrote the memory, and the reader shows it every time.
#pragma once

#include "align/judge/verdict.h"

namespace opguard {

// Notes on what was overwritten in either run. A candidate whose operator read such bytes becomes
// a race: the notes and its `why` say so. Where another thread ran meanwhile, the pivot is the
// first use of that memory.
void add_overwritten_findings(const Run& a, const Run& b, const Alignment& alignment,
                              Verdict& verdict);

}  // namespace opguard
