// support/qualified_name.h: a Python function's __qualname__ as sites have it (Site::scope).
//
//   "f.<locals>.g.<listcomp>"     "f.g": a comprehension is its function's
//   "<module>"                    itself, as "<lambda>" is
#pragma once

#include <string>
#include <string_view>

namespace opguard {

std::string scope_of(std::string_view qualified);

}  // namespace opguard
