// Scopes are found in one pass: items lie in the order of the text, and an item's `after` is where
// it ends.
#include "suspects/code.h"

#include <algorithm>

#include "support/parallel.h"

namespace opguard {
namespace {

Scope scope_of_definition(const CodeFile& file, uint32_t item, uint32_t parent) {
  const Node node = file.node(item);
  Scope scope;
  const bool function = node.kind() == Kind::function_definition;
  scope.kind = function ? Scope::Kind::function : Scope::Kind::klass;
  scope.item = item;
  scope.parent = parent;
  const Node name = node.field(Field::name);
  if (name) scope.name = file.source->text.substr(name.start(), name.end() - name.start());
  const uint32_t above = file.tree->items()[item].parent;
  const bool decorated = file.node(above).kind() == Kind::decorated_definition;
  scope.lines = file.lines(decorated ? above : item);
  if (!function)
    node.field(Field::superclasses).each_named_child([&](Node base) {
      if (base.kind() != Kind::keyword_argument) scope.bases.emplace_back(last_name(file, base));
    });
  return scope;
}

// `open` is a stack of bodies that have begun. A scope's number grows with its place, so inner ones
// come after outer ones.
void find_scopes(CodeFile& file) {
  const std::vector<TreeItem>& items = file.tree->items();
  file.scope_of.resize(items.size());
  std::vector<std::pair<uint32_t, uint32_t>> open;  // where a body ends, its scope
  std::unordered_map<uint32_t, uint32_t> bodies;    // item of a body -> scope
  for (uint32_t i = 0; i < items.size(); ++i) {
    while (!open.empty() && i >= open.back().first) open.pop_back();
    if (auto body = bodies.find(i); body != bodies.end())
      open.emplace_back(items[i].after, body->second);
    file.scope_of[i] = open.empty() ? 0 : open.back().second;
    if (items[i].kind != Kind::function_definition && items[i].kind != Kind::class_definition)
      continue;
    const Node body = file.node(i).field(Field::body);
    if (!body) continue;
    file.scopes.push_back(scope_of_definition(file, i, file.scope_of[i]));
    bodies.emplace(body.index(), uint32_t(file.scopes.size() - 1));
  }
}

}  // namespace

std::string_view CodeFile::text(uint32_t item) const {
  const TreeItem& at = tree->items()[item];
  return std::string_view(source->text).substr(at.start, at.end - at.start);
}

// `end` is behind the last byte: an item that ends with its line does not reach into the next one.
LineSpan CodeFile::lines(uint32_t item) const {
  const TreeItem& at = tree->items()[item];
  return {source->line_of(at.start), source->line_of(at.end > at.start ? at.end - 1 : at.end)};
}

uint32_t CodeFile::scope_at(uint32_t line) const {
  uint32_t found = 0;  // an inner scope comes after those around it
  for (uint32_t i = 1; i < scopes.size(); ++i)
    if (scopes[i].lines.first <= line && line <= scopes[i].lines.last) found = i;
  return found;
}

uint32_t CodeFile::class_around(uint32_t scope) const {
  while (scope != 0 && scopes[scope].kind != Scope::Kind::klass) scope = scopes[scope].parent;
  return scope;
}

std::string CodeFile::path_of(uint32_t scope) const {
  const Scope& own = scopes[scope];
  return own.parent == 0 ? own.name : path_of(own.parent) + "." + own.name;
}

std::optional<uint32_t> CodeFile::expression_at(uint32_t line, uint32_t column, uint32_t end_line,
                                                uint32_t end_column) const {
  std::optional<uint32_t> found;
  for (uint32_t i = 0; i < tree->items().size(); ++i) {
    const TreeItem& at = tree->items()[i];
    // A block of one statement has its lines and columns.
    if (!at.named || at.kind == Kind::block || source->line_of(at.start) != line ||
        source->line_of(at.end) != end_line)
      continue;
    if (source->column_of(at.start) == column && source->column_of(at.end) == end_column &&
        // The first is the outermost of these lines and columns: `f(x)` and not its callee.
        !is_statement(node(i)) && !found)
      found = i;
  }
  return found;
}

uint32_t CodeFile::statement_of(uint32_t item) const {
  while (item != 0 && !is_statement(node(item))) item = tree->items()[item].parent;
  return item;
}

LineSpan CodeFile::statement_lines(uint32_t statement) const {
  LineSpan span = lines(statement);
  const std::vector<TreeItem>& items = tree->items();
  for (uint32_t i = statement + 1; i < items[statement].after; i = items[i].after)
    if (items[i].kind == Kind::block) {
      // `if x:` ends where its block begins; a block on the same line is not told apart.
      const uint32_t block = source->line_of(items[i].start);
      if (block > span.first) span.last = block - 1;
      break;
    }
  return span;
}

Code::Code(const SourceSet& sources) : files_(sources.files.size()) {
  parallel_for(files_.size(), [&](size_t i) {
    CodeFile& file = files_[i];
    file.source = &sources.files[i];
    Diagnostics unread;  // the survey has told of it
    file.tree = parse_tree(*file.source, unread);
    file.scopes.emplace_back();
    file.scopes[0].lines = {1, uint32_t(file.source->line_starts.size())};
    if (file.tree) find_scopes(file);
  });
  for (uint32_t i = 0; i < files_.size(); ++i) by_path_[files_[i].source->path] = i;
}

std::optional<uint32_t> Code::find(const std::string& path) const {
  const auto found = by_path_.find(path);
  return found == by_path_.end() ? std::nullopt : std::optional(found->second);
}

bool is_statement(const Node& node) {
  const Node above = node.parent();
  return above && (above.kind() == Kind::block || above.kind() == Kind::module);
}

// `int` of `x: int`, `-> int`; with the sign before it.
bool annotates(const CodeFile& file, uint32_t item) {
  const std::vector<TreeItem>& items = file.tree->items();
  const uint32_t next = items[item].after;
  uint32_t at = item;
  if (!items[item].named && next < items.size() && items[next].kind == Kind::type &&
      items[next].parent == items[item].parent)
    at = next;
  while (at != 0 && items[at].kind != Kind::type) at = items[at].parent;
  if (at == 0) return false;
  const Node above = file.node(items[at].parent);
  const bool field = above.kind() == Kind::assignment && !above.field(Field::right) &&
                     file.scopes[file.scope_of[at]].kind == Scope::Kind::klass;
  return !field;
}

//   x: int = 3  # three       x = 3 is code; `: int` and the comment are none
//   """What it does."""       none, where it is a statement of its own
bool is_code(const CodeFile& file, uint32_t item) {
  const std::vector<TreeItem>& items = file.tree->items();
  if (items[item].after != item + 1 || items[item].extra || items[item].kind == Kind::comment ||
      items[item].end == items[item].start || annotates(file, item))
    return false;
  // `"""What it does."""` is a statement of its own.
  for (uint32_t at = item; at != 0; at = items[at].parent) {
    const Kind kind = items[at].kind;
    if (kind == Kind::block || kind == Kind::module) return true;
    if (kind != Kind::string && kind != Kind::concatenated_string) continue;
    const uint32_t above = items[at].parent;
    if (items[above].kind == Kind::expression_statement &&
        file.node(above).named_children().size() == 1)
      return false;
  }
  return true;
}

std::string_view last_name(const CodeFile& file, Node node) {
  // From the outside in: of a call its callee, of `a.b` the b.
  while (node) {
    switch (node.kind()) {
      case Kind::identifier:
        return std::string_view(file.source->text).substr(node.start(), node.end() - node.start());
      case Kind::attribute:
        node = node.field(Field::attribute);
        break;
      case Kind::call:
        node = node.field(Field::function);
        break;
      case Kind::subscript:
        node = node.field(Field::value);
        break;
      default:
        return {};
    }
  }
  return {};
}

std::string name_in_string(const CodeFile& file, Node node) {
  // A text longer than that is a sentence and no name.
  constexpr size_t kMost = 60;
  if (node.kind() != Kind::string) return "";
  std::string_view text =
      std::string_view(file.source->text).substr(node.start(), node.end() - node.start());
  if (text.size() < 3 || text.size() > kMost || text.front() != text.back() ||
      (text.front() != '"' && text.front() != '\''))
    return "";
  text = text.substr(1, text.size() - 2);
  text.remove_prefix(std::min(text.find_first_not_of('-'), text.size()));
  std::string name(text);
  std::replace(name.begin(), name.end(), '-', '_');
  const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
  return plain && !(name[0] >= '0' && name[0] <= '9') ? name : "";
}

}  // namespace opguard
