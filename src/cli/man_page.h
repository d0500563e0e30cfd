// cli/man_page.h: opguard(1), from the program's own App.
//
//   .SH COMMANDS
//   .SS opguard diff                   for each command: usage, sentence, options, examples, footer
//   .SH SEE ALSO                       the topics of `opguard help`
//
// Counterexample: a page that is written by hand. It would be right until somebody adds an option.
#pragma once

#include <string>

#include "CLI/CLI.hpp"

namespace opguard {

// In man(7), for `man -l` and for share/man/man1.
std::string man_page(const CLI::App& app);

}  // namespace opguard
