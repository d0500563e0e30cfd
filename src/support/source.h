// support/source.h: Python source text and where it comes from.
//
//   root     package "", /home/me/tree                  file model/rope.py
//   root     package megatron.core, /site-packages   file megatron/core/optimizer.py
//
// A file's bytes are never decoded or normalised: offsets are byte offsets, so an edit fits
// whatever the encoding and the line ends are. Counterexample: a column in a message counts
// characters, as an editor does; column_of() counts them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "llvm/Support/Error.h"
#include "support/diagnostics.h"

namespace opguard {

// Where runs are kept (store/run_store.h). It holds copies of sources, which are no source.
inline constexpr const char* kStoreFolder = ".opguard";

// A folder whose Python files belong to the user: the tree itself (package "") or a package
// named by --with, such as "transformers" or "megatron.core".
struct SourceRoot {
  std::string package;  // "" for the tree
  std::string dir;      // absolute; the parent of the package's top folder, or the tree
  std::string subdir;   // "" for the tree; "transformers", "megatron/core" for a package

  bool operator==(const SourceRoot&) const = default;
};

// One file's bytes, never decoded or normalised: offsets are byte offsets.
struct SourceFile {
  std::string package;  // as in SourceRoot
  std::string name;     // relative to SourceRoot::dir, '/' separated: "model/rope.py",
                        // "transformers/trainer.py"
  std::string path;     // absolute
  std::string text;
  std::vector<uint32_t> line_starts;  // byte offset of each line; [0] == 0
  // Within long lines, every so often: byte offset and column there. A file may be one line, and a
  // column is asked for at each of its calls.
  struct ColumnMark {
    uint32_t offset, column;
    bool operator==(const ColumnMark&) const = default;
  };
  std::vector<ColumnMark> column_marks;

  // 1-based line of a byte offset.
  uint32_t line_of(uint32_t offset) const;
  // 0-based column of a byte offset, counted in Unicode characters of its line.
  uint32_t column_of(uint32_t offset) const;
  // Byte offset of (1-based line, 0-based UTF-8 byte column), clamped to the text.
  uint32_t offset_of(uint32_t line, uint32_t byte_column) const;
  // The text of a 1-based line without its line ending.
  std::string_view line_text(uint32_t line) const;
};

// An expression on one line: blanks, line ends and the backslashes that continue a line are one
// space.
std::string expression_line(std::string_view text);

// A file or folder that should have been read and could not: its name and why.
struct UnreadPath {
  std::string package;  // as in SourceRoot
  std::string path;     // absolute
  std::string why;      // the system's words: "Permission denied"
  bool operator==(const UnreadPath&) const = default;
};

struct SourceSet {
  std::vector<SourceRoot> roots;
  std::vector<SourceFile> files;        // sorted by (package, name)
  std::vector<UnreadPath> unread = {};  // skipped; the user is told

  // nullptr when the set holds no such file.
  const SourceFile* find(std::string_view package, std::string_view name) const;
};

SourceFile make_source(std::string package, std::string name, std::string path, std::string text);

// Every .py file under the roots, without caches, virtual environments, .git and
// kStoreFolder. Symbolic links to
// folders are not followed. What cannot be read is skipped and listed in `unread`. Error if a root
// cannot be read or holds no Python file.
llvm::Expected<SourceSet> read_sources(const std::vector<SourceRoot>& roots);

// Only these files (absolute paths); those outside every root are skipped.
llvm::Expected<SourceSet> read_sources(const std::vector<SourceRoot>& roots,
                                       const std::vector<std::string>& paths);

// A diagnostic at a byte of a file, `length` characters long; an error until the caller says
// otherwise.
Diagnostic diagnostic_at(const SourceFile& source, uint32_t offset, uint32_t length,
                         std::string message);

}  // namespace opguard
