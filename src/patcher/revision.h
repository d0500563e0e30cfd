// patcher/revision.h: the files of a git revision, written to a folder of ours; and what git says
// of a folder that is there.
//
//   export_revision("/repo", "v1.2", "/tmp/x")     the files of v1.2 in /tmp/x; /repo is as it was
//   work_tree_of("/repo/src")                      root /repo, HEAD, 2 tracked files of src changed
//
// Counterexample: `git checkout v1.2`. It would change the user's work tree, and run hooks and
// filters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "llvm/Support/Error.h"

namespace opguard {

// A folder in a work tree: HEAD and what was changed since.
struct WorkTree {
  std::string root;        // of the work tree, absolute, without a slash at its end
  std::string commit;      // HEAD, 40 hex digits; "" before the first commit
  std::string remote;      // where `origin` is, without names and passwords; "": there is none
  uint64_t changed = 0;    // tracked files of the folder with uncommitted changes
  std::string an_example;  // one of them
};

// Nothing: no work tree holds the folder, or none of its files is tracked (a build folder, data).
std::optional<WorkTree> work_tree_of(const std::string& dir);

// "https://user:secret@host/x.git" -> "https://host/x.git"; "git@host:x.git" -> "ssh://host/x.git".
std::string public_url(const std::string& url);

// The commit from which HEAD of the repository that holds `dir` went its own way.
struct MergeBase {
  std::string commit;    // 40 hex digits
  std::string revision;  // as it was named: "main"
};
// revision: "" is the main branch: what origin/HEAD names, else origin/main, origin/master, main or
// master. Error: no repository, no such revision, no common commit.
llvm::Expected<MergeBase> merge_base_of(const std::string& dir, const std::string& revision);

// Writes the tree of `revision` ("v1.2", "HEAD~3", a hash) of the repository that holds `dir` into
// `out`, which is made. Gives the commit, "" for a revision that names a tree. The repository, its
// index and its work tree stay as they are; no hook or filter runs. Error: no repository, no such
// revision, or `out` cannot be written.
llvm::Expected<std::string> export_revision(const std::string& dir, const std::string& revision,
                                            const std::string& out);

}  // namespace opguard
