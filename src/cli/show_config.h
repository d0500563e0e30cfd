// cli/show_config.h: --show-config: every option's value and where it comes from.
//
//   command    python train.py --steps 3    pyproject.toml:3:1
//   --with     transformers                 command line
//   --steps    until nothing new comes      default
//   --color    never                        environment: NO_COLOR
#pragma once

#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "cli/settings.h"

namespace opguard {

inline constexpr const char* kShowConfig = "--show-config";

// Before the parse: each command that has options gets the flag.
void add_show_config(CLI::App& app);

// Before the parse: nothing is demanded of a command line that only asks; the parse ends in
// CLI::Success.
void demand_nothing(CLI::App& command);

// After the parse. program: the words behind `--`. On stdout as text; as JSON where --json FILE is
// on the command line, `-` for stdout. The exit code.
int show_config(CLI::App& command, const AppliedSettings& settings,
                const std::vector<std::string>& program);

}  // namespace opguard
