// session/locate.h: the boundaries of a plan in a tree of sources.
//
//   parse the plan's files       all of their sites
//   match                        finds the boundaries that are where they were
//   parse all other files        only sites that may be a lost boundary's: matcher/search.h
//   match again                  with these
//
// Counterexample: a file that is no Python is skipped and named by a warning. The boundaries that
// were in it are lost, whatever else reads like them.
//
// The cost: sites of a large tree would take half a gigabyte, so the others are forgotten file by
// file.
#pragma once

#include <vector>

#include "matcher/match.h"
#include "matcher/template.h"
#include "parser/site.h"
#include "plan/plan.h"
#include "session/skipped.h"
#include "support/diagnostics.h"
#include "support/source.h"

namespace opguard {

struct Located {
  std::vector<Site> sites;  // of the plan's files, and what else may hold one of its boundaries
  MatchSet matches;         // indices in `sites`
  std::vector<SkippedFile> skipped;
};

// Every file is parsed, on all cores; one that is no Python is skipped and named by a warning. The
// boundaries that were in it are lost, whatever else reads like them: nobody can tell whether they
// are still there. Sites are kept only where a boundary may be: those of a large tree would take
// half a gigabyte.
Located locate(const SourceSet& sources, const TemplateLibrary& templates, const Plan& plan,
               Diagnostics& diags);

}  // namespace opguard
