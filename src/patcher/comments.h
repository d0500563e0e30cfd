// patcher/comments.h: comment lines that say what the probes of the lines below them record.
//
//   # opguard: records x + self.attn(...), self.ln_1(...)
//   x = og("model.add:okze", x) + og("model.attn:55ln", self.attn)(...)
//
// Text of the file is shown only as far as it is ASCII. Whatever the file's encoding, such bytes
// mean themselves and no character is cut. A comment stands above the nearest line that one may
// stand above (parser/comment_lines.h), at that line's own indentation.
#pragma once

#include <string>
#include <vector>

#include "llvm/Support/Error.h"
#include "parser/import_line.h"
#include "patcher/patch.h"
#include "support/diagnostics.h"
#include "support/source.h"

namespace opguard {

// The lines of a file's comments, as edits of it. `wraps`: of this file, in order of source.
// Nothing, and a note, where the file has such lines of its own: they could not be told from ours.
std::vector<Edit> comment_edits(const SourceFile& plain, const std::vector<Wrap>& wraps,
                                const ImportPlace& place, Diagnostics& diags);

// "x + self.attn(...)", "each item of loader".
std::string recorded_text(const std::string& text, const Wrap& wrap);

}  // namespace opguard
