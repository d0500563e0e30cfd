// cli/man_page.h: opguard(1), from the program's own App.
#pragma once

#include <string>

#include "CLI/CLI.hpp"

namespace opguard {

// In man(7), for `man -l` and for share/man/man1.
std::string man_page(const CLI::App& app);

}  // namespace opguard
