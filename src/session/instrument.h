// session/instrument.h: probes into a tree, out of it again, or in and verified.
//
//   opguard-instrument . -- python train.py             traced now: its operators get probes
//   opguard-instrument . --plan plan.json --apply       by a plan, in another version of the tree
//   opguard-instrument . --strip --apply                every probe out again, to the byte
//   opguard-instrument . --verify -- python train.py    does a probe change a bit (verify.h)
//
// Counterexample: no file is written unless --apply or --branch says so. Else the patch goes to
// stdout, as a diff.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "session/leave_out.h"

namespace opguard {

struct InstrumentOptions {
  std::string repo;
  std::string plan;
  std::vector<std::string> packages;
  SourceChoice sources;
  std::string python;  // "": see interpreter()
  std::string branch;
  std::string templates;  // "": the tool's own
  bool apply = false, check = false, strip = false, all_sites = false;
  bool comments = false;  // say above each line what its probes record
  bool verify = false;
  std::vector<std::string> stripped;  // --check-stripped: session/check_stripped.h
  std::string json, work;
  uint64_t seed = 0, runs = 20;
  std::vector<std::string> command;
};

// The exit code (support/exit_code.h).
int instrument(const InstrumentOptions& opt);

}  // namespace opguard
