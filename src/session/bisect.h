// session/bisect.h: the first commit, or release of a package, whose run differs: `opguard bisect`.
//
//   reference    GOOD exported, surveyed, recorded once: plan and logs (kept_run.h)
//   search       which commit halves what is left (bisect_search.h)
//   judge        that commit exported, GOOD's plan found in its sources, one guarded run, aligned
//                with the reference (bisect_judge.h); from the first difference on no run goes
//                further than its step
//   name         the first bad commit against its parent, in full: `opguard diff`
//
// A commit is bad if a model value of its run differs, whatever a test says of it. Counterexample:
// one that fails, or whose run cannot be compared, is neither: it is skipped.
//
// The cost: one run of the program a commit that is tried, log2 of the commits in all. The
// reference costs two, one of them traced, and the naming what `diff` costs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "preflight/preflight.h"
#include "session/leave_out.h"
#include "session/report_verdict.h"

namespace opguard {

struct BisectOptions {
  std::vector<std::string> revisions;  // GOOD BAD, or one GOOD..BAD
  std::string repository = ".";        // with a package: the tree the program is in
  std::string package;                 // "": commits
  std::string module;                  // what it is imported by; "": package, with _ for -
  std::string python;                  // of the program, with a package; "": its command's
  std::string environments;            // where releases are installed; "": in the work folder
  std::vector<std::string> releases;   // empty: the package index is asked
  std::vector<std::string> packages;   // --with
  SourceChoice sources;
  std::string setup;               // shell command, in each exported commit
  std::vector<std::string> links;  // link_data
  uint32_t jobs = 1;
  uint64_t steps = kUntilNothingNew;
  std::string work;  // kept, and taken up again
  std::string templates;
  bool deterministic = false;
  uint64_t seed = 0;
  uint32_t prove_runs = 3;  // of the naming
  bool name = true;         // run the first bad commit against its parent
  ReportOptions report;     // of it json, rules, colour
  std::vector<std::string> command;
};

// The exit code: kYes the first bad one was found, kNo BAD does not differ, kCouldNotTell else.
int bisect(BisectOptions options);

}  // namespace opguard
