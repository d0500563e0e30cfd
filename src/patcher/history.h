// patcher/history.h: the commits between two revisions of a repository.
//
//   GOOD   o - o - BAD      ancestors of BAD that are no ancestors of GOOD, oldest first
//
// Counterexample: a commit that a merge brought in is among them, though GOOD came later by the
// clock. Dates decide nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "llvm/Support/Error.h"

namespace opguard {

struct Commit {
  std::string id, tree;              // 40 hex digits each
  std::string author, date, title;   // "Ann <ann@x.org>", "2026-01-01T12:00:00Z", the first line
  std::vector<std::string> parents;  // ids
};

struct History {
  std::string root;    // of the work tree
  std::string remote;  // WorkTree::remote
  Commit good;
  std::vector<Commit> commits;                 // parents before children, BAD the last
  std::vector<std::vector<uint32_t>> parents;  // of each, those among `commits`
  std::string base;  // the commit GOOD and BAD both come from, where GOOD is no ancestor of BAD
};

// Error: no repository holds `dir`, no such revision, the two have no commit in common, BAD is an
// ancestor of GOOD, more than `most` commits.
llvm::Expected<History> history_between(const std::string& dir, const std::string& good,
                                        const std::string& bad, size_t most);

}  // namespace opguard
