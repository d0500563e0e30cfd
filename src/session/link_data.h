// session/link_data.h: data that a program needs and git does not keep, for trees that are exported
// revisions.
//
//   opguard diff --git v1..v2 --link data -- python train.py
//
// makes <tree>/data a link to <repository>/data. Where a revision has a folder of that name, what
// is missing in it is linked; a file that the revision has stays its own.
#pragma once

#include <string>
#include <vector>

#include "llvm/Support/Error.h"

namespace opguard {

// paths: relative to the repository, or absolute in it. Error: there is none, or it lies outside.
llvm::Error link_data(const std::vector<std::string>& paths, const std::string& repository,
                      const std::string& tree);

// What a failed program may have missed. These are names in the last lines of `output` (files its
// words were written to) that `repository` has and `tree` lacks. Each is as --link would take it.
std::vector<std::string> missing_data(const std::vector<std::string>& outputs,
                                      const std::string& repository, const std::string& tree);

}  // namespace opguard
