// session/read_rules.h: files of invariants, by name: a path, or "builtin".
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
