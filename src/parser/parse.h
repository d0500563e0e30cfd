// parser/parse.h: Python text -> operator sites. The only user of tree-sitter.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "parser/outline.h"
#include "parser/site.h"
#include "support/diagnostics.h"
#include "support/source.h"

namespace opguard {

// The sites of one file in evaluation order. A tree with an ERROR or MISSING node gives one
// diagnostic at its position and no sites. Three known faults of tree-sitter-python 0.25.0 are
// mended: `type(x).attr = v` (read as a type alias), call spans that include a `*`, and lines
// inside brackets that are indented less than their block (joined_lines.h).
std::vector<Site> parse_sites(const SourceFile& source, Diagnostics& diags);

// Only the scopes chosen by what they hold of these words; the others cost a fraction.
std::vector<Site> parse_sites(const SourceFile& source, const Words& words,
                              const ChooseScopes& choose, Diagnostics& diags);

// The diagnostics that parse_sites() would give, at less cost.
void check_syntax(const SourceFile& source, Diagnostics& diags);

// A file that carries probes is read as if it did not: positions are those of without_probes().
// All files, in the order of the set.
std::vector<Site> parse_sites(const SourceSet& sources, Diagnostics& diags);

// A probe already in the text: og("<id>", operand), with the byte ranges to delete to undo it.
struct Probe {
  std::string boundary;
  std::string variant{};  // "", ".writes", ".step", ".micro_batch"
  Site site;              // as if the probe (and probes inside) were not there
  struct Range {
    uint32_t start, end;
    std::string replacement;  // "" except where the probe replaced an operator (augment of a name)
    bool operator==(const Range&) const = default;
  };
  std::vector<Range> undo;
  bool operator==(const Probe&) const = default;
};

// Probes and the import line of an instrumented file; empty for a file without our import line.
// `import_range` gets the byte range of the whole import line with its line ending.
std::vector<Probe> parse_probes(const SourceFile& source, Probe::Range& import_range,
                                Diagnostics& diags);

// The file as it was before its probes; nothing and a diagnostic if it does not parse.
std::optional<SourceFile> without_probes(const SourceFile& source, Diagnostics& diags);

// An f-string's `{...}`, in which an id is written between `quote`.
struct QuotedRange {
  uint32_t start = 0, end = 0;
  char quote = '"';
  bool operator==(const QuotedRange&) const = default;
};

// Where the import line of a file without probes belongs: behind docstring and `__future__`
// imports.
struct ImportPlace {
  uint32_t offset = 0;
  std::string name;                   // "og", or "og_1", ... where the file uses that name itself
  std::string newline;                // the file's own line ending
  std::vector<QuotedRange> quoted{};  // outer before inner
  bool operator==(const ImportPlace&) const = default;
};
std::optional<ImportPlace> import_place(const SourceFile& source, Diagnostics& diags);

}  // namespace opguard
