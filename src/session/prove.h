// session/prove.h: the runs that prove what is the cause: docs/design/proof.md.
//
//   verdict    diverged; candidates softmax (it read the same in both runs), add (it only follows)
//   run 1      a again, with softmax's tensors written
//   run 2      b with a's softmax in place: every model value is run a's
//   so         proven: softmax, by two runs
//
// A run is spent only where the ones before leave something open. A run that does not repeat itself
// ends it, unless everything was healed all the same.
//
// Counterexample: a candidate that read other values than run a's. It is never forced alone: it
// follows something, and a's values in its place would hide from where.
//
// The cost: at most `runs` runs of the programs, to the end of the judged step where both came that
// far. In memory, an index of all values of each run.
#pragma once

#include "session/report_verdict.h"
#include "session/side.h"

namespace opguard {

// At most `runs` further runs; with less than two none is made. Puts the causes first among the
// verdict's candidates, in their order. a, b: how the programs are run; run_a, run_b: what they
// have recorded.
Examined prove(const GuardedProgram& a, const GuardedProgram& b, const Run& run_a, const Run& run_b,
               const Alignment& alignment, Verdict& verdict, uint32_t runs);

}  // namespace opguard
