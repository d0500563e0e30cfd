// session/skipped.h: files that cannot be read, or are no Python: each is skipped and named, and
// the rest of the tree goes on.
//
//   old/py2.py:3:7: warning: ...; the file is skipped
//
// Counterexample: a file that the program has loaded. It is Python, whatever our parser makes of
// it, and its operators show as unattributed (survey.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/diagnostics.h"
#include "support/source.h"

namespace opguard {

struct SkippedFile {
  std::string package, file;  // as in SourceFile; of a file never read, its path below the root
  uint32_t line = 0;          // 0: the whole file
  std::string why;
  bool operator==(const SkippedFile&) const = default;
};

// found: what the parser said of the sources, one error for each file it could not parse. Each
// goes to `diags` as a warning that says "the file is skipped", as do the sources' unread files.
std::vector<SkippedFile> skip_files(const SourceSet& sources, const Diagnostics& found,
                                    Diagnostics& diags);

}  // namespace opguard
