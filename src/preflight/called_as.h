// preflight/called_as.h: whether what ran is what a site calls, by name.
//
// Interpreters before 3.11 tell a line and no column. Of the line's sites the one is taken that is
// called as what ran: `aten::rsub` ran, and `1 - x` stands there.
#pragma once

#include <string>

#include "parser/site.h"

namespace opguard {

// callee: "aten::mul_.Tensor" or a Python function's name.
bool is_called(const Site& site, const std::string& callee);

}  // namespace opguard
