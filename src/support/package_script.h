// support/package_script.h: some lines of Python that use our own package, in an interpreter of the
// user's.
//
//   package_command("python3", "from opguard import dataset; ...", {"run_a/log", "runs"})
//
// The package is loaded by its path: nothing that lies beside it becomes importable. Nor does what
// lies in the working directory. `sys.argv[1:]` are the words.
#pragma once

#include <string>
#include <vector>

namespace opguard {

// The command that runs `body`, whose ImportError, OSError and ValueError are one line and exit
// code 1. No byte code is written.
std::vector<std::string> package_command(const std::string& python, const std::string& body,
                                         const std::vector<std::string>& words);

}  // namespace opguard
