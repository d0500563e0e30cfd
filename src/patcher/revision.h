// patcher/revision.h: the files of a git revision, written to a folder of ours.
#pragma once

#include <string>

#include "llvm/Support/Error.h"

namespace opguard {

// Writes the tree of `revision` ("v1.2", "HEAD~3", a hash) of the repository that holds `dir` into
// `out`, which is made. The repository, its index and its work tree stay as they are; no hook or
// filter runs. Error: no repository, no such revision, or `out` cannot be written.
llvm::Error export_revision(const std::string& dir, const std::string& revision,
                            const std::string& out);

}  // namespace opguard
