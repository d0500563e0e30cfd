// cli/side.h: one side of a comparison: a tree, a command, and what the stages make of them.
#pragma once

#include <string>
#include <vector>

#include "llvm/Support/Error.h"
#include "matcher/share.h"
#include "matcher/template.h"
#include "preflight/launch.h"
#include "preflight/plan.h"
#include "preflight/preflight.h"
#include "support/diagnostics.h"
#include "support/source.h"

namespace opguard {

struct Side {
  std::string name;                  // "a" or "b"
  std::string tree;                  // absolute
  std::vector<std::string> command;  // `{tree}` replaced
  std::string work;                  // folder of ours for this side
};

// What a side's preflight gives: the sources its program loaded, their sites, its own plan.
struct Survey {
  SourceSet sources;
  std::vector<Site> sites;
  Plan plan;
};

// Runs the side's program under the tracer. Files that cannot be parsed are left out with a warning
// in `diags`: they ran, so they are Python, and their operators show as unattributed.
llvm::Expected<Survey> survey(const Side& side, const std::vector<std::string>& packages,
                              uint64_t steps, const TemplateLibrary& templates, Diagnostics& diags);

// Writes the side's instrumented texts and the hook map that loads them in place of the
// originals; no file of the user's is touched. Gives the hook map's path.
llvm::Expected<std::string> write_hook(const Side& side, const Survey& survey,
                                       const std::vector<Bound>& bounds, Diagnostics& diags);

// Runs the side's program again under the hook; its logs and their sites.json are in `<work>/log`,
// its output in `<work>/output.txt`. Error if the program fails or records nothing.
llvm::Error record(const Side& side, const std::string& hook, const std::vector<Bound>& bounds,
                   const SourceSet& sources, const Variables& environment);

}  // namespace opguard
