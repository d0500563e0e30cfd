// session/certify.h: the checks of a repository, run: `opguard certify`.
//
//   1  checks     of opguard.toml or pyproject.toml, and of the command line
//   2  reuse      a check whose inputs are as they were when it was certified runs nothing
//   3  run        what several checks run alike is recorded once; the merge base's run is kept
//   4  judge      by tier; a drift that was accepted is told apart
//   5  write      a table, and files for a CI
//
// Programs run in the tree as they lie there, the merge base's in an exported copy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "session/leave_out.h"
#include "session/report_verdict.h"

namespace opguard {

struct CertifyOptions {
  std::vector<std::string> names;  // none: all
  std::string against;             // revision
  std::vector<std::string> packages;
  SourceChoice sources;
  bool no_control = false;  // not under determinism control
  uint64_t seed = 0;
  std::string update, reason, until;  // --update NAME
  bool fresh = false;                 // no certificate is reused
  bool list = false;                  // names the checks and runs nothing
  std::string json, junit, sarif, markdown;
  std::string store, work, templates;
  std::vector<std::string> command;
};

// The exit code: 0 all certified, 1 one is not, 2 one could not be told.
int certify(CertifyOptions opt);

}  // namespace opguard
