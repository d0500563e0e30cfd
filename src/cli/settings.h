// cli/settings.h: options get the values that the repository's settings file gives them.
//
//   built in  <  [tool.opguard]  <  [tool.opguard.diff]  <  the command line
//
// A value counts as the option's own default: the command line replaces it, a list too. What one
// option demands of another (`--seed` of `--deterministic`) is asked of the command line alone.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "settings/settings_file.h"
#include "support/diagnostics.h"

namespace opguard {

// The program after `--`, as a key: a list of words, or a string for the shell.
inline constexpr const char* kCommandKey = "command";

struct AppliedSettings {
  // None: there is no settings file.
  std::optional<SettingsFile> file;
  // By key; `exclude` for --exclude.
  std::map<std::string, Setting> values;
  // What stands after `--` where the command line has nothing there.
  std::vector<std::string> program;
};

// The name of the command's table: "diff".
std::string table_of(const CLI::App& command);

// Whether the words after `--` are the user's program.
bool takes_program(const CLI::App& command);

// Whether a settings file can say anything to the command.
bool has_settings(const CLI::App& command);

// all: the program with every command, for tables and keys of the others. The first fault in the
// file is in `diags`, and then no option has got a value.
AppliedSettings apply_settings(const CLI::App& all, CLI::App& command, const SettingsFile& file,
                               Diagnostics& diags);

}  // namespace opguard
