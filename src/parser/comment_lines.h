// parser/comment_lines.h: where a line that is only a comment may stand, and which of them are
// ours.
//
// `instrument --comments` says above a line what its probes record. A comment line is nothing to
// Python between two tokens that a line's end may part. In a string it is text, and behind a
// backslash an error:
//
//   x = f(a,            a comment may stand above this line,
//         b)            above this one, since brackets are open,
//   y = a + \           above this,
//       b               not above this one: a backslash joins it to the line before,
//   s = """
//   text"""             nor above this one: it is inside a string.
#pragma once

#include <cstdint>
#include <vector>

#include "parser/tree.h"
#include "support/source.h"

namespace opguard {

// For each line, the first at [0]: whether a comment line may be put above it.
std::vector<bool> lines_open_to_comments(const SourceFile& source, const Tree& tree);

// The 1-based numbers of the lines that are comments as `instrument --comments` writes them.
std::vector<uint32_t> comment_lines(const SourceFile& source, const Tree& tree);

}  // namespace opguard
