// session/leave_out.h: files of a tree that a static command does not read as source.
#pragma once

#include <string>
#include <vector>

#include "support/source.h"

namespace opguard {

// --exclude: takes the files out that a pattern matches by their names in the tree. `*` stands for
// any text, also with slashes; a pattern that names a folder takes all below it: "vendor" takes
// "vendor/a/b.py". How many they are is said; so is a pattern that matches nothing.
void leave_out(SourceSet& sources, const std::vector<std::string>& patterns);

// Takes the tree's files out that git ignores: an environment, a build, what was generated. How
// many they are is said.
void leave_out_ignored(SourceSet& sources, const std::string& tree);

}  // namespace opguard
