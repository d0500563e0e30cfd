// cli/mistakes.h: what a command line that cannot be read should have been.
//
//   opguard dif a b                 no command 'dif'; did you mean 'diff'?
//   opguard dump log --formt csv    no option '--formt'; did you mean '--format'?
//   opguard diff a b python t.py    put -- before 'python', which begins the program
#pragma once

#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace opguard {

// "" or that the first word names no command.
std::string unknown_command(const CLI::App& app, int argc, char** argv);

// Where a command's arguments hold a program's words too, since no `--` stands before them: the
// first of these. A program is what PATH has, or what is one argument too many. "" if there is
// none.
std::string program_among(const CLI::App& command);
std::string put_dashes_before(const std::string& word);

// The sentence for an error that CLI11 has thrown, of the command that was being read.
// dashes: the command line has a `--`.
std::string mistake(const CLI::App& app, const CLI::ParseError& error, bool dashes);

}  // namespace opguard
