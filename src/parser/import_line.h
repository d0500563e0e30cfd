// parser/import_line.h: the place of our import line in a parsed file.
//
//   """A docstring."""                  must stay first
//   from __future__ import annotations  must come before any other statement
//                                       <- here: everything below it can carry a probe
//   import torch
//
// Counterexample: the end of all imports. A module may compute between two of them.
#pragma once

#include "parser/quotes.h"
#include "parser/tree.h"

namespace opguard {

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

ImportPlace find_import_place(const SourceFile& source, const Tree& tree);

}  // namespace opguard
