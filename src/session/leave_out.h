// session/leave_out.h: --exclude: files of a tree that a static command does not read as source.
#pragma once

#include <string>
#include <vector>

#include "support/source.h"

namespace opguard {

// Takes the files out that a pattern matches by their names in the tree. `*` stands for any text,
// also with slashes; a pattern that names a folder takes all below it: "vendor" takes
// "vendor/a/b.py". How many they are is said; so is a pattern that matches nothing.
void leave_out(SourceSet& sources, const std::vector<std::string>& patterns);

}  // namespace opguard
