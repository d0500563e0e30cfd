// cli/side.h: one side of a comparison: a tree, a command, and what the stages make of them.
#pragma once

#include <string>
#include <vector>

#include "cli/survey.h"
#include "llvm/Support/Error.h"
#include "matcher/share.h"
#include "preflight/launch.h"
#include "support/diagnostics.h"
#include "support/source.h"

namespace opguard {

struct DiffSide {
  std::string name;                  // "a" or "b"
  std::string tree;                  // absolute
  std::vector<std::string> command;  // `{tree}` replaced
  std::string work;                  // folder of ours for this side
};

// The side's sources with their probes, in its work folder. Gives the hook map's path.
llvm::Expected<std::string> instrument_side(const DiffSide& side, const Survey& survey,
                                            const std::vector<Bound>& bounds, Diagnostics& diags);

// Runs the side's program again under the hook; its logs and their sites.json are in `<work>/log`,
// its output in `<work>/output.txt`. Error if the program fails or records nothing.
llvm::Error record(const DiffSide& side, const std::string& hook, const std::vector<Bound>& bounds,
                   const SourceSet& sources, const Variables& environment);

}  // namespace opguard
