// support/version.h: which opguard this is, and what it was asked to do.
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

// The command line, as it would be typed again. Set once, by main.
void set_invocation(int argc, char** argv);
const std::string& invocation();

// Now, in UTC: "2026-11-24T15:04:05Z".
std::string date_now();

}  // namespace opguard
