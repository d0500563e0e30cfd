// preflight/build_plan.h: what ran (a trace) or what is written (sites) -> an alignment plan.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "matcher/template.h"
#include "parser/site.h"
#include "plan/plan.h"
#include "plan/trace.h"
#include "support/source.h"

namespace opguard {

// False for activities that make no boundary: aten::detach, aten::is_same_size, prim::*,
// profiler::*.
bool is_interesting(const std::string& activity);

// Boundaries are the sites under which activities were seen, in order of their first execution.
// `sites` are those of `sources`, whole files. Plan::command and ::opguard are left to the caller.
Plan build_plan(const Trace& trace, const SourceSet& sources, const std::vector<Site>& sites,
                const TemplateLibrary& templates);

// Every site that a template accepts, or with all_calls every call; refused sites are `unwrapped`.
Plan static_plan(const SourceSet& sources, const std::vector<Site>& sites,
                 const TemplateLibrary& templates, bool all_calls);

// Ids of all sites: unique among themselves and apart from `taken`, the same on every machine.
std::vector<std::string> boundary_ids(const std::vector<Site>& sites,
                                      const std::set<std::string>& taken = {});

}  // namespace opguard
