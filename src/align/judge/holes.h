// align/judge/holes.h: what incomplete logs leave of a verdict.
//
//   a   embed norm linear relu loss       b   embed norm linear [cut]
//   "only run a has relu"                 cannot stand: b may have had it
//   linear differs in both                stands: both logs hold it
//
// It is asked last, whoever said it (conclude.cc). Counterexample: a data loader's worker may be
// killed at any time. Its log ends early, and counts only if it can hold model values.
#pragma once

#include "align/judge/verdict.h"

namespace opguard {

// A verdict that rests on something being absent cannot stand where records may be missing. A
// verdict "identical" becomes inconclusive. So does "diverged", unless its pivot is a pair of
// events that were both recorded and differ. Where one run only goes on longer than the other,
// whose log was cut short, no pivot stands at all.
Verdict limit_by_holes(Verdict verdict, const Run& a, const Run& b, const Alignment& alignment);

// Whether it rests on what the runs computed last, before an early end (judge()): inconclusive,
// with candidates.
bool computed_last(const Verdict& verdict);

}  // namespace opguard
