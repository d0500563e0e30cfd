// session/match_tree.h: which site of a tree is which boundary of a plan: `opguard match`.
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
