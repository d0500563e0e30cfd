// preflight/build_plan.h: what ran (a trace) or what is written (sites) -> an alignment plan.
//
//   trace    model.py 14:8 CALL: aten::softmax, 12 times     a boundary: its site, tags, counts
//   trace    model.py 3:0, `del cache`                       unwrapped: no form to wrap
//   trace    below no file of the user's                     foreign
//
// Boundaries are the sites under which activities were seen, in order of their first execution. All
// other sites of their scopes are kept as context, since a scope is told by all of its operators.
//
// Counterexample: a view makes no boundary where nothing is computed (aten::detach), unless the
// program calls it: `.detach()` keeps every value and changes every gradient.
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
