// support/say.h: every line that a command prints for people. Whatever a name, a log or a
// repository holds, no terminal is driven by it: control and bidi characters are spelled out
// (support/text.h).
#pragma once

#include <string>

namespace opguard {

// "opguard: TEXT" on stderr; what stands on further lines of the text is indented, so that nothing
// but us can begin a line with "opguard:".
void say(const std::string& text);

// Whole lines, on stdout. False: they could not be written.
bool print_lines(const std::string& text);
// The same on stderr.
void print_diagnostics(const std::string& text);

}  // namespace opguard
