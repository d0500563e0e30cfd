// patcher/ignored.h: which files of a tree its repository wants, and which it does not.
//
//   .gitignore: build/     build/gen.py       ignored, not kept
//                          build/conf.py      ignored by name, but in the index: kept
//                          scratch.py         neither: new, and wanted
//
// Counterexample: the ignore rules alone. They name conf.py too, which somebody has added all the
// same; the index decides.
#pragma once

#include <string>
#include <vector>

namespace opguard {

// For each path, absolute: whether .gitignore, .git/info/exclude or core.excludesFile names it or a
// folder above it, and git keeps no file of that name. All false where `tree` lies in no
// repository, or in a folder that is ignored as a whole. Then its owner has asked for just that.
std::vector<bool> ignored_by_git(const std::string& tree, const std::vector<std::string>& paths);

// For each path, absolute: whether git keeps a file of that name. All false in no repository.
std::vector<bool> kept_by_git(const std::string& tree, const std::vector<std::string>& paths);

}  // namespace opguard
