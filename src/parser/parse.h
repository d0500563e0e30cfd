// parser/parse.h: Python text -> operator sites. The only user of tree-sitter.
//
//   "y = q * k"                     one site: binary *, operand q
//   "y = og(\"a1\", q) * k", marked   the same site: as if the probe were not there
//   "y = q *"                       no sites, one diagnostic
//
// Counterexample: sites of the part that parses. A file with a fault would have fewer operators
// than it runs, and nobody would know.
//
// The cost: a parse and a walk for each file, files side by side.
#pragma once

#include <vector>

#include "parser/outline.h"
#include "parser/site.h"
#include "support/diagnostics.h"
#include "support/source.h"

namespace opguard {

// The sites of one file in evaluation order. A tree with an ERROR or MISSING node gives one
// diagnostic at its position and no sites. Four known faults of tree-sitter-python 0.25.0 are
// mended. It reads `type(x).attr = v` as a type alias, and call spans include a `*`. It refuses
// lines inside brackets that are indented less than their block, and stars before what is no name
// (mended_text.h).
std::vector<Site> parse_sites(const SourceFile& source, Diagnostics& diags);

// Only the scopes chosen by what they hold of these words; the others cost a fraction.
std::vector<Site> parse_sites(const SourceFile& source, const Words& words,
                              const ChooseScopes& choose, Diagnostics& diags);

// The diagnostics that parse_sites() would give, at less cost.
void check_syntax(const SourceFile& source, Diagnostics& diags);

// A file that carries probes is read as if it did not: positions are those of without_probes().
// All files, in the order of the set.
std::vector<Site> parse_sites(const SourceSet& sources, Diagnostics& diags);

}  // namespace opguard
