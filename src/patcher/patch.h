// patcher/patch.h: matched sites -> edits -> a git diff. The only user of libgit2.
//
//   h * rstd       ->    og("mul:77ab", h) * rstd             two insertions, around h
//   x += y         ->    x = og.name("add:o5p6", x).iadd(y)   the token changes too
//   a < b < c      ->    og(..., a) < og(..., b) < c          b only where a is wrapped
//
// An edit inserts; lines keep their numbers but for the one import line. Wraps within wraps open
// from the outside in and close from the inside out (Edit::nesting).
//
// Counterexample: a file that changed since it was read, or has uncommitted changes. It is refused,
// and with it the whole patch: every file or none is written.
//
// The cost: one pass over each file that changes; the diff is libgit2's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "llvm/Support/Error.h"
#include "parser/site.h"
#include "support/diagnostics.h"
#include "support/source.h"

namespace opguard {

// Replace `length` bytes at `offset` by `text`. Insertions at one offset go in the order of
// `nesting`. That is its depth for an opening, so that the outer comes first, minus its depth for a
// closing.
struct Edit {
  uint32_t offset = 0, length = 0;
  std::string text;
  int32_t nesting = 0;
  bool operator==(const Edit&) const = default;
};

// At the start of a line: first our import line, then what it means, then what the line's probes
// record, then openings.
inline constexpr int32_t kImportNesting = -2, kPrefaceNesting = -1, kCommentNesting = 0;

// A site chosen to carry a probe.
struct Wrap {
  std::string boundary;
  Site site;
  // Behind `og` in the source: "", ".writes", ".step", ".micro_batch"
  // (docs/design/architecture.md).
  std::string variant{};
};

struct FilePatch {
  std::string package, name, path;
  std::string before, after;
  bool operator==(const FilePatch&) const = default;
};

struct Patch {
  std::vector<FilePatch> files;  // only files that change
  bool operator==(const Patch&) const = default;
};

// Apply edits to a text. Error naming both if two overlap in a way that depends on their order.
llvm::Expected<std::string> apply_edits(const std::string& text, std::vector<Edit> edits);

// Whether a patch says in comment lines what its probes record (patcher/comments.h).
enum class Comments : uint8_t { without, with };

// Wrap every site. Files that already carry probes are stripped first, so a second run changes
// nothing. Refused sites (Site::refusal) are left alone. Each file gains one import line, and
// comment lines where they are wanted.
llvm::Expected<Patch> make_patch(const SourceSet& sources, const std::vector<Wrap>& wraps,
                                 Diagnostics& diags, Comments comments = Comments::without);

// The original text of every instrumented file, byte for byte, without our comments.
llvm::Expected<Patch> strip_patch(const SourceSet& sources, Diagnostics& diags);

// git's unified diff format, as `git apply` takes it. Paths are a/NAME b/NAME, NAME relative to the
// work tree's top for a file in one.
std::string format_diff(const Patch& patch);

// The part of a patch that may be written. It leaves out symbolic links and what is reached through
// one: where the link leads, the text is patched under its own name. Unless `dir` is "", it leaves
// out files outside that folder. One line a link or package left out goes to `notes`.
Patch writable_part(const Patch& patch, const std::string& dir, std::string& notes);

// Every file or none. It refuses when a file is not what the patch was made from, and (in a git
// work tree) when it has uncommitted changes. Symbolic links are kept and never written through.
llvm::Error apply_patch(const Patch& patch);

// Commits the patch on a new branch of the repository that holds `dir`; the work tree stays as it
// is.
llvm::Error commit_patch(const Patch& patch, const std::string& dir, const std::string& branch);

}  // namespace opguard
