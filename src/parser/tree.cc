// Parses with tree-sitter, mends what its grammar gets wrong, and flattens the tree into one array.
//
//   a + f(b)    binary_operator, identifier a, +, call, identifier f, argument_list, ...
//               each item knows its parent, and the item behind its last descendant
//
// So to step over a subtree is to read one number, and a walk goes through memory in order.
//
// Words that are keywords in some places only are the grammar's trouble. `type(x).attr = v` comes
// out as a type alias, and `print (x)` as Python 2. The text is parsed again with another word of
// the same length (`typf`, `prixt`), so that every offset stays true. Counterexample: Python 2's
// `print x` is mended alike, and then is the error that it must be.
//
// The cost: one parse and one walk. A second parse only for such words, and for text that is
// refused.
#include "parser/tree.h"

#include <tree_sitter/api.h>

#include <array>
#include <cctype>
#include <memory>
#include <string>
#include <unordered_map>

#include "parser/mended_text.h"
#include "parser/readable_text.h"

extern "C" const TSLanguage* tree_sitter_python(void);

namespace opguard {
namespace {

// A node's depth is limited by our recursion, as CPython's is by its own.
constexpr uint32_t kMaxDepth = 3000;

const std::unordered_map<std::string_view, Kind>& kind_names() {
  static const std::unordered_map<std::string_view, Kind> names = {
#define KIND(name) {#name, Kind::name}
      KIND(comment),
      KIND(module),
      KIND(block),
      KIND(identifier),
      KIND(attribute),
      KIND(subscript),
      KIND(slice),
      KIND(call),
      KIND(argument_list),
      KIND(keyword_argument),
      KIND(binary_operator),
      KIND(unary_operator),
      KIND(comparison_operator),
      KIND(boolean_operator),
      KIND(not_operator),
      KIND(conditional_expression),
      KIND(named_expression),
      KIND(parenthesized_expression),
      KIND(lambda),
      KIND(await),
      KIND(yield),
      KIND(list),
      KIND(tuple),
      KIND(set),
      KIND(dictionary),
      KIND(pair),
      KIND(list_comprehension),
      KIND(set_comprehension),
      KIND(dictionary_comprehension),
      KIND(generator_expression),
      KIND(for_in_clause),
      KIND(if_clause),
      KIND(elif_clause),
      KIND(list_splat),
      KIND(dictionary_splat),
      KIND(expression_list),
      KIND(string),
      KIND(concatenated_string),
      KIND(interpolation),
      KIND(integer),
      KIND(none),
      KIND(ellipsis),
      KIND(as_pattern),
      KIND(as_pattern_target),
      KIND(pattern_list),
      KIND(tuple_pattern),
      KIND(list_pattern),
      KIND(list_splat_pattern),
      KIND(expression_statement),
      KIND(assignment),
      KIND(augmented_assignment),
      KIND(if_statement),
      KIND(while_statement),
      KIND(assert_statement),
      KIND(with_statement),
      KIND(with_clause),
      KIND(with_item),
      KIND(for_statement),
      KIND(delete_statement),
      KIND(function_definition),
      KIND(class_definition),
      KIND(decorated_definition),
      KIND(decorator),
      KIND(case_pattern),
      KIND(default_parameter),
      KIND(typed_default_parameter),
      KIND(lambda_parameters),
      KIND(parameters),
      KIND(type),
      KIND(type_parameter),
      KIND(type_alias_statement),
      KIND(print_statement),
      KIND(exec_statement),
      KIND(import_from_statement),
      KIND(future_import_statement),
#undef KIND
      {"format_expression", Kind::interpolation},
      {"float", Kind::float_},
      {"true", Kind::true_},
      {"false", Kind::false_}};
  return names;
}

// By symbol, so that a walk compares no strings.
const std::vector<Kind>& kinds() {
  static const std::vector<Kind> table = [] {
    const TSLanguage* language = tree_sitter_python();
    std::vector<Kind> result(ts_language_symbol_count(language), Kind::other);
    for (uint32_t i = 0; i < result.size(); ++i) {
      if (ts_language_symbol_type(language, i) != TSSymbolTypeRegular) continue;
      auto it = kind_names().find(ts_language_symbol_name(language, i));
      if (it != kind_names().end()) result[i] = it->second;
    }
    return result;
  }();
  return table;
}

// In the order of Field.
constexpr std::array kFieldNames = {
    "alias",     "alternative",  "arguments", "attribute", "body",      "definition",  "function",
    "left",      "name",         "object",    "operator",  "operators", "parameters",  "right",
    "subscript", "superclasses", "type",      "value",     "argument",  "consequence", "condition"};

TSFieldId field_id(Field field) {
  static const auto ids = [] {
    std::array<TSFieldId, kFieldNames.size()> result{};
    for (size_t i = 0; i < kFieldNames.size(); ++i) {
      std::string_view name = kFieldNames[i];
      result[i] = ts_language_field_id_for_name(tree_sitter_python(), name.data(), name.size());
    }
    return result;
  }();
  return ids[static_cast<size_t>(field)];
}

struct Cursor {
  TSTreeCursor raw;
  explicit Cursor(TSNode node) : raw(ts_tree_cursor_new(node)) {}
  ~Cursor() { ts_tree_cursor_delete(&raw); }
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;
};

Kind kind_of(TSSymbol symbol) {
  return symbol < kinds().size() ? kinds()[symbol] : Kind::other;  // ERROR is 65535
}

// All nodes in the order of a walk; cut short behind a node that is too deep, whose offset is then
// in `too_deep`.
void flatten(TSNode root, std::vector<TreeItem>& items, std::optional<uint32_t>& too_deep) {
  static_assert(kFieldNames.size() < 64);
  Cursor cursor(root);
  std::vector<uint32_t> open;  // the node and those around it
  items.clear();
  items.reserve(ts_node_descendant_count(root));
  while (true) {
    TSNode node = ts_tree_cursor_current_node(&cursor.raw);
    TreeItem item;
    item.start = ts_node_start_byte(node);
    item.end = ts_node_end_byte(node);
    item.after = 0;
    item.parent = open.empty() ? 0 : open.back();
    item.symbol = ts_node_symbol(node);
    item.kind = kind_of(item.symbol);
    item.field = ts_tree_cursor_current_field_id(&cursor.raw) & 63;
    item.named = ts_node_is_named(node);
    item.extra = ts_node_is_extra(node);
    open.push_back(static_cast<uint32_t>(items.size()));
    items.push_back(item);
    if (open.size() > kMaxDepth) too_deep = item.start;
    if (!too_deep && ts_tree_cursor_goto_first_child(&cursor.raw)) continue;
    while (true) {
      items[open.back()].after = static_cast<uint32_t>(items.size());
      open.pop_back();
      if (!too_deep && ts_tree_cursor_goto_next_sibling(&cursor.raw)) break;
      if (open.empty()) return;
      ts_tree_cursor_goto_parent(&cursor.raw);
    }
  }
}

// In bytes: what no line is longer than cannot be nested deeper on one line.
size_t longest_line(std::string_view text) {
  size_t longest = 0;
  for (size_t from = 0; from < text.size();) {
    size_t to = std::min(text.find('\n', from), text.size());
    longest = std::max(longest, to - from);
    from = to + 1;
  }
  return longest;
}

// Soft keywords read as statements. `type(x).attr = v` comes out as a type alias and `print (x)`
// may as Python 2's statement. Another word of the same length makes them the calls they are, and
// Python 2 the error it is. True if a word changed.
bool disarm_keywords(const std::vector<TreeItem>& items, std::string& text) {
  bool changed = false;
  for (uint32_t i = 0; i < items.size(); ++i) {
    const Kind kind = items[i].kind;
    if (kind == Kind::type_alias_statement) {
      Node left = Node(items.data(), i).field(Field::left);
      char first = left ? text[left.start()] : ' ';
      if (!std::isalpha(static_cast<unsigned char>(first)) && first != '_' && first >= 0) {
        text[items[i].start + 3] = 'f';  // typf
        changed = true;
      }
    } else if (kind == Kind::print_statement || kind == Kind::exec_statement) {
      text[items[i].start + 3] = 'x';  // prixt, exex
      changed = true;
    }
  }
  return changed;
}

bool is_fault(TSNode node) { return ts_node_is_error(node) || ts_node_is_missing(node); }

// The first faulty node below `root` in source order.
std::optional<TSNode> find_fault(TSNode root) {
  Cursor cursor(root);
  bool down = ts_tree_cursor_goto_first_child(&cursor.raw);
  while (down) {
    TSNode node = ts_tree_cursor_current_node(&cursor.raw);
    if (is_fault(node)) return node;
    if (ts_node_has_error(node) && ts_tree_cursor_goto_first_child(&cursor.raw)) continue;
    while (!ts_tree_cursor_goto_next_sibling(&cursor.raw))
      if (!ts_tree_cursor_goto_parent(&cursor.raw)) return std::nullopt;
  }
  return std::nullopt;
}

// An error that spans lines says little. What is faulty inside it, or the first thing in it that is
// no whole statement, is nearer the fault.
TSNode nearest_fault(TSNode node) {
  auto lines = [](TSNode n) { return ts_node_end_point(n).row - ts_node_start_point(n).row; };
  while (ts_node_is_error(node) && lines(node) > 0) {
    if (std::optional<TSNode> inner = find_fault(node)) {
      node = *inner;
      continue;
    }
    for (uint32_t i = 0; i < ts_node_child_count(node); ++i) {
      TSNode child = ts_node_child(node, i);
      std::string_view type = ts_node_type(child);
      if (!type.ends_with("_statement") && !type.ends_with("_definition") && type != "comment")
        return child;
    }
    break;
  }
  return node;
}

void report_error(const SourceFile& source, TSNode root, Diagnostics& diags) {
  std::optional<TSNode> found = is_fault(root) ? root : find_fault(root);
  if (found) found = nearest_fault(*found);
  uint32_t offset = found ? ts_node_start_byte(*found) : 0;
  std::string message = "this does not parse as Python 3";
  uint32_t length = 0;
  if (found && ts_node_is_missing(*found)) {
    message = std::string("expected '") + ts_node_type(*found) + "'";
  } else if (found) {
    uint32_t line_end = source.offset_of(source.line_of(offset), UINT32_MAX);
    uint32_t end = std::min(ts_node_end_byte(*found), line_end);
    length = source.column_of(end) - source.column_of(offset);
  }
  diags.add(diagnostic_at(source, offset, length, std::move(message)));
}

// One parser a thread: it keeps its memory from file to file.
TSParser* parser() {
  thread_local const std::unique_ptr<TSParser, void (*)(TSParser*)> kept = [] {
    TSParser* made = ts_parser_new();
    ts_parser_set_language(made, tree_sitter_python());
    return std::unique_ptr<TSParser, void (*)(TSParser*)>(made, ts_parser_delete);
  }();
  return kept.get();
}

using OwnedTree = std::unique_ptr<TSTree, void (*)(TSTree*)>;

OwnedTree parse_text(const std::string& text) {
  return OwnedTree(
      ts_parser_parse_string(parser(), nullptr, text.data(), static_cast<uint32_t>(text.size())),
      ts_tree_delete);
}

// The fault may be the grammar's own: one mend is tried after the other, each on what the one
// before has made. True, and `text` is one that it reads.
bool mend_text(std::string& text) {
  std::string mended = text;
  for (auto mend : {without_stars, joined_lines}) {
    std::optional<std::string> found = mend(mended);
    if (!found || *found == mended) continue;
    mended = std::move(*found);
    if (ts_node_has_error(ts_tree_root_node(parse_text(mended).get()))) continue;
    text = std::move(mended);
    return true;
  }
  return false;
}

}  // namespace

const char* Node::type() const {
  return ts_language_symbol_name(tree_sitter_python(), item().symbol);
}

Node Node::field(Field field) const {
  if (!items_) return {};
  const TSFieldId id = field_id(field);
  for (uint32_t i = index_ + 1; i < item().after; i = items_[i].after)
    if (items_[i].field == id) return {items_, i};
  return {};
}

std::vector<Node> Node::children() const {
  std::vector<Node> result;
  for (uint32_t i = index_ + 1; i < item().after; i = items_[i].after)
    result.emplace_back(items_, i);
  return result;
}

std::vector<Node> Node::named_children() const {
  std::vector<Node> result;
  each_named_child([&](Node child) { result.push_back(child); });
  return result;
}

Node Node::first_named_child() const {
  if (items_)
    for (uint32_t i = index_ + 1; i < item().after; i = items_[i].after)
      if (items_[i].named && !items_[i].extra) return {items_, i};
  return {};
}

std::vector<Node> Node::fields(Field field) const {
  std::vector<Node> result;
  const TSFieldId id = field_id(field);
  for (uint32_t i = index_ + 1; i < item().after; i = items_[i].after)
    if (items_[i].field == id) result.emplace_back(items_, i);
  return result;
}

uint32_t expression_start(Node node) {
  for (Node n = node; n; n = n.first_child()) {
    Kind kind = n.kind();
    if (kind != Kind::list_splat && kind != Kind::list_splat_pattern) continue;
    if (n.start() != node.start()) break;
    Node inner = n.first_named_child();
    return inner ? expression_start(inner) : node.start();
  }
  return node.start();
}

bool is_python(const SourceFile& source, Diagnostics& diags) {
  std::optional<std::string> text = readable(source, diags);
  if (!text) return false;
  OwnedTree parsed = parse_text(*text);
  // What needs a walk to be told. It is the fault's place, and Python 2, which the grammar reads as
  // well. It is also a nesting that only long lines of brackets or operators can reach.
  const bool walk = ts_node_has_error(ts_tree_root_node(parsed.get())) ||
                    text->find("print ") != text->npos || text->find("exec ") != text->npos ||
                    longest_line(*text) > kMaxDepth;
  return !walk || parse_tree(source, diags);
}

std::optional<Tree> parse_tree(const SourceFile& source, Diagnostics& diags) {
  std::optional<std::string> text = readable(source, diags);
  if (!text) return std::nullopt;
  Tree tree;
  std::optional<uint32_t> too_deep;
  for (bool again = true, mended = false; again;) {
    OwnedTree parsed = parse_text(*text);
    TSNode root = ts_tree_root_node(parsed.get());
    too_deep.reset();
    flatten(root, tree.items_, too_deep);
    again = disarm_keywords(tree.items_, *text);
    if (!again && ts_node_has_error(root)) {
      // Once: a text that was mended and is refused again is at fault itself.
      if (!mended && mend_text(*text)) {
        again = mended = true;
        continue;
      }
      report_error(source, root, diags);
      return std::nullopt;
    }
  }
  if (too_deep) {
    diags.add(diagnostic_at(source, *too_deep, 0, "nested too deeply"));
    return std::nullopt;
  }
  return tree;
}

}  // namespace opguard
