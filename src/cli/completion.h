// cli/completion.h: what a shell needs to complete the program's command line, from its own App.
#pragma once

#include <string>

#include "CLI/CLI.hpp"

namespace opguard {

// Each is a whole file for that shell. Behind `--` the program's own completion goes on. bash needs
// version 4 (mapfile), and there calls bash-completion's _command_offset where that is loaded.
std::string bash_completion(const CLI::App& app);
std::string zsh_completion(const CLI::App& app);
std::string fish_completion(const CLI::App& app);

}  // namespace opguard
