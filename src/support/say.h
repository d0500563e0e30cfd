// support/say.h: every line that a command prints for people. Whatever a name, a log or a
// repository holds, no terminal is driven by it: control and bidi characters are spelled out
// (support/text.h).
#pragma once

#include <cstdint>
#include <string>

namespace opguard {

// "opguard: TEXT" on stderr; what stands on further lines of the text is indented, so that nothing
// but us can begin a line with "opguard:".
void say(const std::string& text);

// How much is said of a command's course: --quiet, --verbose. Answers, warnings and errors are
// never left out.
enum class Talk : uint8_t { quiet, normal, verbose };
// Set once, before a command begins.
void set_talk(Talk talk);
Talk talk();
// say(), of what a user waits for: also from a piece of work whose output goes to a file.
void say_outside(const std::string& text);
// Where such a piece says it: a descriptor of the command's own stderr.
void set_outside(int descriptor);
// say(), of what is being done: nothing where the command is quiet.
void say_step(const std::string& text);

// Whole lines, on stdout. False: they could not be written.
bool print_lines(const std::string& text);
// The same on stderr.
void print_diagnostics(const std::string& text);

}  // namespace opguard
