// parser/parse.h: Python text -> operator sites. The only user of tree-sitter.
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
