// preflight/find_calls.h: who called whom, from a trace and the sources it ran.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "parser/site.h"
#include "plan/trace.h"
#include "record/calls.h"
#include "support/source.h"

namespace opguard {

// A site's place in its file.
Location location_of(const Site& site, const SourceFile& file);

// Indices of the sites below which operators took random numbers from a generator.
std::set<uint32_t> drawing_sites(const Trace& trace, const SourceSet& sources,
                                 const std::vector<Site>& sites);

// Calls between functions of `sources`. A function that is made inside another is called
// "outer.inner", as in Site::scope; comprehensions are their functions'. What calls without a site
// (an attribute that is looked up) is left out. Each file that holds one of them is parsed again.
Calls find_calls(const Trace& trace, const SourceSet& sources, const std::vector<Site>& sites);

}  // namespace opguard
