// support/install.h: where this build's own data lies: beside an installed program or in the tree
// it was built from.
#pragma once

#include <string>

namespace opguard {

// The operator templates (templates/*.json).
std::string templates_dir();

// The folder of the Python package `opguard`: boot/ and the extension lie in it.
std::string python_package_dir();

}  // namespace opguard
