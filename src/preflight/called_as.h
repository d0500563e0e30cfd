// preflight/called_as.h: whether what ran is what a site calls, by name.
//
//   ran                   stands there      is it called so?
//   aten::mul_.Tensor     x.mul_(2)         yes: "mul"
//   aten::rsub            1 - x             yes: torch's name of Python's "sub"
//   relu                  F.relu(x)         yes: a Python function's own name
//   aten::add             x * y             no
//
// Interpreters before 3.11 tell a line and no column. Of the line's sites the one is taken that is
// called as what ran.
#pragma once

#include <string>

#include "parser/site.h"

namespace opguard {

// callee: "aten::mul_.Tensor" or a Python function's name.
bool is_called(const Site& site, const std::string& callee);

}  // namespace opguard
