// align/judge/isolated.h: records that differ alone, among equal ones.
//
//   event       40 41 42 43   44         45 46 47 48
//               all equal     differs    all equal       and nobody else holds its value
//
// A bit that flipped in a log looks like this, or memory that was read at a bad moment. What an
// operator really computed otherwise is read by somebody, and then that reader differs as well.
//
// Counterexample: two slots of one run hold the differing value. Somebody handed it on, so it is
// real.
//
// The cost: one pass over the pairs. Only where that leaves suspects are the slots of both runs
// read.
#pragma once

#include <vector>

#include "align/judge/verdict.h"

namespace opguard {

// Two events of one boundary of which tensors alone differ, while nothing around them does and
// nobody else holds the values they differ by. That is likely a false alarm: what is really another
// value is read by somebody.
struct IsolatedPair {
  EventRef a, b;
  uint32_t slot = kNone;  // of side b: the first that differs
  bool operator==(const IsolatedPair&) const = default;
};

// In the order of the certificate. At least kIsolatedReach equal pairs are on either side, and in
// neither run an event without a partner is between them. Of generators' states, the same generator
// is equal in the states before and after.
inline constexpr size_t kIsolatedReach = 4;
std::vector<IsolatedPair> isolated_pairs(const Run& a, const Run& b, const Alignment& alignment);

// Says so of the candidates that are among them, and in a note of the others.
void mark_isolated(const std::vector<IsolatedPair>& isolated, Verdict& verdict);

}  // namespace opguard
