// cli/locate.h: the boundaries of a plan in a tree of sources.
#pragma once

#include <vector>

#include "matcher/match.h"
#include "matcher/template.h"
#include "parser/site.h"
#include "plan/plan.h"
#include "support/diagnostics.h"
#include "support/source.h"

namespace opguard {

struct Located {
  std::vector<Site> sites;  // of the plan's files, and what else may hold one of its boundaries
  MatchSet matches;         // indices in `sites`
};

// Every file is parsed, on all cores, and a fault in any is reported: as a warning where it is in a
// package, which is left as it is. Sites are kept only where a boundary may be: those of a large
// tree would take half a gigabyte.
Located locate(const SourceSet& sources, const TemplateLibrary& templates, const Plan& plan,
               Diagnostics& diags);

}  // namespace opguard
