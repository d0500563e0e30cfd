// session/diff.h: two trees, or two commands, run and compared: `opguard diff`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "preflight/preflight.h"
#include "session/examine.h"
#include "session/leave_out.h"
#include "session/report_verdict.h"

namespace opguard {

struct DiffOptions {
  std::vector<std::string> trees;  // one or two, unless --git
  std::vector<std::string> packages;
  SourceChoice sources;
  std::string run_a, run_b;        // shell commands
  std::string revisions;           // "good..bad", "good.."
  std::vector<std::string> links;  // link_data, with revisions
  uint64_t steps = kUntilNothingNew;
  std::string work;
  bool copy_trees = false;  // every run in a copy of its own (session/tree_copy.h)
  std::string templates;
  bool deterministic = false;
  uint64_t seed = 0;
  ExamineOptions examine;
  ReportOptions report;
  std::vector<std::string> command;
};

// The exit code (support/exit_code.h).
int diff(DiffOptions opt);

}  // namespace opguard
