// session/package_releases.h: the releases of a package, and one of them in a folder.
//
//   list_releases("python", "einops")       pip is asked; its index and settings are the user's
//   install_release(..., "0.6.1", FOLDER)   uv where it is on PATH, else pip
//
// FOLDER holds the release and what of its requirements the interpreter does not meet; the rest,
// torch before all, stays the interpreter's own. So a release costs megabytes and seconds. With
// FOLDER in front of PYTHONPATH the program imports it.
//
// Counterexample: a release that asks for another torch. It is not installed, and why is told.
#pragma once

#include <string>
#include <vector>

#include "llvm/Support/Error.h"

namespace opguard {

// Oldest first. Error: no pip can be asked, or it knows no such package.
llvm::Expected<std::vector<std::string>> list_releases(const std::string& python,
                                                       const std::string& package);

// Those from `good` to `bad`, both among them; 4.38 stands for 4.38.0. Error: one of them is not
// listed, or they are no range.
llvm::Expected<std::vector<std::string>> releases_from_to(const std::string& package,
                                                          std::vector<std::string> listed,
                                                          const std::string& good,
                                                          const std::string& bad);

// "" or why it cannot be used. A folder that is complete is used again. Where another search is
// just installing it, that one is waited for, and this is said. Error: it cannot be written, or we
// were stopped.
llvm::Expected<std::string> install_release(const std::string& python, const std::string& package,
                                            const std::string& release, const std::string& folder);

// Numbers of a release, without zeros at their end: "4.38.0" -> 4 38; "1.0rc1" -> nothing.
std::vector<uint64_t> release_numbers(const std::string& release);

}  // namespace opguard
