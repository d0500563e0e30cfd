// align/judge/callers.h: from the operator at which the runs part out to the call that made them.
//
// An operator stands in a function, and the function was called. Where the runs differ in the call,
// the call is named and the operator told beside it:
//
//   one run alone calls it     y = self.act(self.gate(x))    y = self.gate(x)
//   it is given another thing  rotate(q, cos, sin)           rotate(q, sin, sin)
//   it is called elsewhere     loss = f(x)                   with torch.no_grad(): loss = f(x)
//
// Counterexample: a function that one program alone has. All its lines are that program's alone, so
// the operator in it is named.
//
// Facts only: which calls the preflight saw (record/calls.h), and their text on both sides. Where
// several calls would do, or none differs, the operator stays where it is.
#pragma once

#include <vector>

#include "align/judge/verdict.h"
#include "record/record.h"

namespace opguard {

// The candidates, those that are better named so with their call (Pivot::call).
std::vector<Pivot> name_calls(const Run& a, const Run& b, std::vector<Pivot> candidates);

}  // namespace opguard
