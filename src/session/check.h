// session/check.h: `opguard check`: one run against invariants.
//
//   opguard check -- python train.py            recorded with probes, then checked
//   opguard check logs/run7                     what was recorded with --observe
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "session/leave_out.h"

namespace opguard {

struct CheckOptions {
  std::string log;                      // "": `command` is run
  std::vector<std::string> invariants;  // files, "builtin"; none: builtin
  std::vector<std::string> ignored;     // ids
  std::string steps;                    // "M..N", "" for all
  std::string tree = ".", work, templates;
  std::vector<std::string> command, packages;
  SourceChoice sources;
  std::string json, html, sarif;
};

// The exit code: kYes nothing is violated, kNo something is, kCouldNotTell.
int check(const CheckOptions& opt);

}  // namespace opguard
