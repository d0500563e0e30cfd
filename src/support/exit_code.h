// support/exit_code.h: the exit codes of every command.
#pragma once

#include <string>

namespace opguard {

inline constexpr int kYes = 0;           // the same / done
inline constexpr int kNo = 1;            // a difference, or an unmatched site
inline constexpr int kCouldNotTell = 2;  // bad input, or no verdict

// What `git bisect run` takes for "skip this commit": with --bisect-exit for kCouldNotTell.
inline constexpr int kSkipCommit = 125;

// Prints "opguard: error: ..." on stderr and gives kCouldNotTell.
int fail(const std::string& message);

}  // namespace opguard
