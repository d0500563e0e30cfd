#include "parser/comment_lines.h"

#include <cstddef>
#include <string_view>

#include "parser/probe_text.h"

namespace opguard {

std::vector<bool> lines_open_to_comments(const SourceFile& source, const Tree& tree) {
  std::vector<bool> open(source.line_starts.size(), true);
  for (const TreeItem& item : tree.items()) {
    if (item.kind != Kind::string) continue;
    const uint32_t last = source.line_of(item.end);
    // Above the line where a string begins a comment may stand; above those that begin inside of it
    // none may.
    for (uint32_t line = source.line_of(item.start) + 1; line <= last; ++line)
      if (source.offset_of(line, 0) < item.end) open[line - 1] = false;
  }
  // A comment that ends with a backslash joins nothing; its line counts as joined all the same.
  for (uint32_t line = 2; line <= open.size(); ++line)
    if (source.line_text(line - 1).ends_with('\\')) open[line - 1] = false;
  return open;
}

std::vector<uint32_t> comment_lines(const SourceFile& source, const Tree& tree) {
  std::vector<uint32_t> found;
  std::vector<bool> open;
  for (uint32_t line = 1; line <= source.line_starts.size(); ++line) {
    std::string_view text = source.line_text(line);
    const size_t blanks = text.find_first_not_of(kBlanks);
    if (blanks == std::string_view::npos || !text.substr(blanks).starts_with(kCommentMark))
      continue;
    if (open.empty()) open = lines_open_to_comments(source, tree);
    if (open[line - 1]) found.push_back(line);
  }
  return found;
}

}  // namespace opguard
