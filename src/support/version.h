// support/version.h: which opguard this is.
#pragma once

#include <string>

namespace opguard {

// "0.1.0"
const char* version();
// Of the sources it was built from, 12 hex digits; "" where they were no git checkout. A "+" at
// its end: they were changed.
const char* commit();
// "opguard 0.1.0 (9488786f21ab)"
std::string version_text();

}  // namespace opguard
