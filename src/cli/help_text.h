// cli/help_text.h: a command's help, from its options.
//
//   Usage: opguard noise [OPTIONS] TREE -- CMD
//
//   Run one tree several times: ...
//
//   Arguments: / Options: / Example:
//
// The completions and the manual page are made from the same App: nothing about an option is
// written twice.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace opguard {

// What CLI11 does not know of a command.
struct HelpText {
  std::string program;                // "-- CMD" of the usage line, "" where none is taken
  std::vector<std::string> examples;  // whole command lines
};

// Gives a command, and not those below it, this text. CLI11 hands a parent's formatter down to
// what is added later, so the program's own is set last.
void describe(CLI::App& command, HelpText text);
// That of describe(); an empty one without.
HelpText help_text_of(const CLI::App& command);

// "opguard diff", "opguard-instrument".
std::string full_name(const CLI::App& command);
std::string usage_of(const CLI::App& command);

// An option as help, completions and the manual page show it.
struct OptionText {
  std::vector<std::string> names;    // "-o", "--output"; of a positional, its one name
  std::string value;                 // "FILE"; "" of a flag
  std::vector<std::string> choices;  // all values there are, where they are few
  std::string text;                  // one sentence, without a full stop
  bool repeatable = false;
  bool required = false;
};
OptionText text_of(const CLI::Option& option);
// In the order they were added; hidden ones are left out.
std::vector<OptionText> options_of(const CLI::App& command, const std::string& group);
std::vector<OptionText> positionals_of(const CLI::App& command);
std::vector<std::string> groups_of(const CLI::App& command);

}  // namespace opguard
