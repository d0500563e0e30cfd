// session/read_rules.h: files of invariants, by name: a path, or "builtin".
//
//   read_rules_files({}, {"b23ae"})                      what comes with opguard, one of them muted
//   read_rules_files({"builtin", "own.json"}, {})        both, a rule of both once
//
// Counterexample: rules that hide noise of a comparison (--ignore-file). They are another language:
// read_rules() in session/report_verdict.h.
#pragma once

#include <string>
#include <vector>

#include "invariants/invariants_file.h"
#include "llvm/Support/Error.h"

namespace opguard {

// Error: the diagnostic with its line, or a sentence.
llvm::Expected<InvariantsFile> read_rules_file(const std::string& name);
// All of them together; none: builtin. Rules with an id that begins as one of `ignored` are muted.
llvm::Expected<InvariantsFile> read_rules_files(const std::vector<std::string>& names,
                                                const std::vector<std::string>& ignored);

}  // namespace opguard
