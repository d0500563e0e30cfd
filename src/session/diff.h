// session/diff.h: two trees, or two commands, run and compared: `opguard diff`.
//
//   1/4  preflight of a        a survey: trace, sources, sites, plan (survey.h)
//   2/4  preflight of b        likewise, perhaps with another interpreter
//        match                 a's boundaries in b's sites; what only b has keeps its own id
//   3/4  guarded run of a      its sources with probes, under the hook; no user file is written
//   4/4  guarded run of b
//        report                align, judge, prove by further runs, show (report_verdict.h)
//
// A rule with a fault in it is told before the first of them. Counterexample: a program that fails
// is compared all the same, as far as it came, but nothing is proven by running it again.
//
// The cost: four runs of the program, and up to --prove-runs more.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "preflight/preflight.h"
#include "session/examine.h"
#include "session/leave_out.h"
#include "session/report_verdict.h"
#include "session/tolerance.h"

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
  ToleranceRuns tolerance;
  bool simulate = false;  // b unsharded: session/simulate.h
  bool bisect_exit = false;  // kSkipCommit for kCouldNotTell
  ReportOptions report;
  std::vector<std::string> command;
};

// The exit code (support/exit_code.h).
int diff(DiffOptions opt);

}  // namespace opguard
