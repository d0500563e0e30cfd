// preflight/find_calls.h: who called whom, from a trace and the sources it ran.
//
//   trace     rotate, defined at rope.py:3, was called from attention.py 30:11
//   found     caller Attention.forward, text `rotate(q, cos, sin)`, arguments q, cos, sin
//
// The judgement asks this (judge/callers.h): where one run alone calls `rotate`, the call is what a
// user wants to see. Counterexample: a function that was called without an operator below it is not
// in the trace; its text alone tells.
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
