// confirm/reads_otherwise.h: whether an operator reads something else than its partner.
//
//   a   g(h = 17)      b   g(h = 18)             it does: g only follows whoever made h
//   a   f(x = 3)       b   f(x = 3)              it does not: what f leaves is its own
//   a   f(x = 3)       b   f(x = 3, bias = 1)    nor here: it is f that is another
//
// Counterexample: what is unreadable in one run is no other value.
#pragma once

#include "record/record.h"

namespace opguard {

bool reads_otherwise(const ProcessLog& a, const Event& ea, const ProcessLog& b, const Event& eb);

}  // namespace opguard
