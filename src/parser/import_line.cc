#include "parser/import_line.h"

#include <set>

#include "parser/probe_text.h"
#include "parser/quotes.h"

namespace opguard {
namespace {

// Every name of the file that ours could be taken for.
void collect_names(Node node, std::string_view text, std::set<std::string_view>& names) {
  if (node.kind() == Kind::identifier) {
    std::string_view name = text.substr(node.start(), node.end() - node.start());
    if (name.starts_with(kProbeName)) names.insert(name);
  }
  for (Node child : node.named_children()) collect_names(child, text, names);
}

bool is_docstring(Node statement, std::string_view text) {
  if (statement.kind() != Kind::expression_statement) return false;
  std::vector<Node> inner = statement.named_children();
  if (inner.size() != 1) return false;
  Kind kind = inner[0].kind();
  // An f-string or bytes make no docstring, so `from __future__` may not follow: no matter here.
  return kind == Kind::string || kind == Kind::concatenated_string;
}

// "\n" of a text of one line.
std::string first_newline(std::string_view text) {
  size_t end = text.find_first_of("\r\n");
  if (end == std::string_view::npos || text[end] == '\n') return "\n";
  return end + 1 < text.size() && text[end + 1] == '\n' ? "\r\n" : "\r";
}

}  // namespace

ImportPlace find_import_place(const SourceFile& source, const Tree& tree) {
  std::string_view text(source.text);
  ImportPlace place{static_cast<uint32_t>(text.size()), std::string(kProbeName),
                    first_newline(text)};
  std::set<std::string_view> names;
  if (text.find(kProbeName) != std::string_view::npos) collect_names(tree.root(), text, names);
  for (int i = 1; names.contains(place.name); ++i)
    place.name = std::string(kProbeName) + "_" + std::to_string(i);

  // The line of the first statement that no docstring or `__future__` import shares.
  bool header = true, first = true;
  // Of `"""doc"""; x = f()` the whole line belongs to the header: nothing can be put in between.
  uint32_t header_line = 0;
  for (Node statement : tree.root().named_children()) {
    header = header && ((first && is_docstring(statement, text)) ||
                        statement.kind() == Kind::future_import_statement);
    first = false;
    uint32_t line = source.line_of(statement.start());
    if (header || line == header_line) {
      header_line = source.line_of(statement.end());
      continue;
    }
    // A backslash before it makes its line the end of another.
    while (line > 1 && source.line_text(line - 1).ends_with('\\')) --line;
    place.offset = source.offset_of(line, 0);
    break;
  }
  return place;
}

std::optional<ImportPlace> import_place(const SourceFile& source, Diagnostics& diags) {
  std::optional<Tree> tree = parse_tree(source, diags);
  if (!tree) return std::nullopt;
  ImportPlace place = find_import_place(source, *tree);
  place.quoted = find_quoted_ranges(*tree, source.text);
  return place;
}

}  // namespace opguard
