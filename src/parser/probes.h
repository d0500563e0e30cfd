// parser/probes.h: what an instrumented file carries, and the file as it was without it.
//
//   in the file     x = og.name("add:o5p6", x).iadd(y)  # and one import line
//   as it was       x += y
//
// Undoing needs no second copy: each probe says which bytes to delete or to put back. So a tree
// whose original is lost can be stripped byte for byte. Counterexample: a file without our import
// line has no probes, whatever it calls `og`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "parser/site.h"
#include "support/diagnostics.h"
#include "support/source.h"

namespace opguard {

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
  // In the instrumented text. Two of a wrap: what is before the operand, and what is behind it.
  std::vector<Range> undo;
  bool operator==(const Probe&) const = default;
};

// Probes and the import line of an instrumented file; empty for a file without our import line.
// `import_range` gets the byte range of the whole import line with its line ending.
std::vector<Probe> parse_probes(const SourceFile& source, Probe::Range& import_range,
                                Diagnostics& diags);

// The file as it was before its probes; nothing and a diagnostic if it does not parse.
std::optional<SourceFile> without_probes(const SourceFile& source, Diagnostics& diags);

}  // namespace opguard
