// settings/find_file.h: which file holds a repository's settings.
//
//   repo/.git
//   repo/pyproject.toml          [tool.opguard]: of what is started in repo/ and in repo/train/
//   repo/train/pyproject.toml    without that table it is passed over
//
// The search goes from the working folder up to the repository's root, and no further. Outside a
// repository it is the working folder alone: a file that a stranger put into /tmp names no program
// that we start.
//
// Counterexample: two files are never merged. The nearest one counts, whatever the ones above it
// say.
//
// The cost: up to two files looked for in each folder; a pyproject.toml is read to see whether it
// speaks of us.
#pragma once

#include <optional>
#include <string>

namespace opguard {

inline constexpr const char* kOwnFile = "opguard.toml";
inline constexpr const char* kProjectFile = "pyproject.toml";

struct FoundFile {
  std::string path;  // absolute
  // pyproject.toml beside an opguard.toml has a table for us too, which is not read.
  bool passed_over = false;
};

// The nearest one. A pyproject.toml counts where its text speaks of tool.opguard: another one may
// hold faults that are not ours to complain of.
std::optional<FoundFile> find_settings_file(const std::string& folder);

}  // namespace opguard
