// session/check.h: `opguard check`: one run against invariants.
//
//   opguard check -- python train.py            recorded with probes, then checked
//   opguard check logs/run7                     what was recorded with --observe
//
// A violation is a finding with the statement behind it, and rules that one cause breaks are one
// finding.
//
// Counterexample: a log without observations. No rule meets a row there, so it is an error and not
// "kept".
//
// The cost: one pass over the observations; `--` costs a traced run and a guarded one before it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "invariants/invariants_file.h"
#include "llvm/Support/Error.h"
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

// What these rules say of a folder of logs, as JSON.
llvm::Error write_check_json(const std::string& log, const InvariantsFile& rules,
                             const std::string& path);

}  // namespace opguard
