// session/packages.h: where an interpreter finds the packages named by --with.
#pragma once

#include <string>
#include <vector>

#include "llvm/Support/Error.h"
#include "support/source.h"

namespace opguard {

// The tree, then each package as `python` would import it with the tree as its working directory.
// No package is imported, no code of the user's runs. Error: the interpreter does not start, or has
// no such package.
llvm::Expected<std::vector<SourceRoot>> find_roots(const std::string& tree,
                                                   const std::vector<std::string>& packages,
                                                   const std::string& python);

}  // namespace opguard
