// session/match_tree.h: which site of a tree is which boundary of a plan: `opguard match`.
//
//   --json FILE       each boundary: matched, lost or ambiguous, its site, score and runner-up
//   --explain ID      one boundary: its tags, and which of them its site and the runner-up share
//
// Nothing is run and nothing is written into the tree. Counterexample: files of packages. Only the
// tree is read.
//
// The cost: that of locate() (session/locate.h).
#pragma once

#include <string>
#include <vector>

#include "session/leave_out.h"

namespace opguard {

struct MatchOptions {
  std::string plan, tree, json, templates, explain;
  SourceChoice sources;  // of it, leave_out() alone
};

// The exit code (support/exit_code.h).
int match_tree(const MatchOptions& opt);

}  // namespace opguard
