#include "parser/tree.h"

#include <array>
#include <cctype>
#include <string>
#include <unordered_map>

#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/Regex.h"

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

// Visits nodes in source order while `visit(node, depth)` is true; false to leave a node's
// children.
template <typename Visit>
void walk(TSNode root, Visit visit) {
  Cursor cursor(root);
  uint32_t depth = 0;
  while (true) {
    bool deeper = visit(Node{ts_tree_cursor_current_node(&cursor.raw)}, depth);
    if (deeper && ts_tree_cursor_goto_first_child(&cursor.raw)) {
      ++depth;
      continue;
    }
    while (!ts_tree_cursor_goto_next_sibling(&cursor.raw)) {
      if (depth == 0 || !ts_tree_cursor_goto_parent(&cursor.raw)) return;
      --depth;
    }
  }
}

Diagnostic diagnostic_at(const SourceFile& source, uint32_t offset, uint32_t length,
                         std::string message) {
  Diagnostic d;
  d.file = source.path.empty() ? source.name : source.path;
  d.line = source.line_of(offset);
  d.column = source.column_of(offset);
  d.length = length;
  d.message = std::move(message);
  d.line_text = std::string(source.line_text(d.line));
  return d;
}

// PEP 263: a comment on the first or second line that names the encoding.
bool names_other_encoding(const SourceFile& source) {
  static const llvm::Regex coding("^[ \t\f]*#.*coding[:=][ \t]*([-_.a-zA-Z0-9]+)");
  for (uint32_t line = 1; line <= 2; ++line) {
    llvm::StringRef text(source.line_text(line));
    llvm::SmallVector<llvm::StringRef, 2> groups;
    if (coding.match(text, &groups)) {
      std::string name = groups[1].lower();
      return name != "utf-8" && name != "utf8" && name != "utf_8";
    }
    llvm::StringRef rest = text.ltrim(" \t\f");
    if (!rest.empty() && !rest.starts_with("#")) return false;  // a statement ends the search
  }
  return false;
}

// The text as the grammar can read it, byte for byte at the same offsets.
std::optional<std::string> readable(const SourceFile& source, Diagnostics& diags) {
  std::string text = source.text;
  size_t nul = text.find('\0');
  if (nul != std::string::npos) {
    diags.add(diagnostic_at(source, nul, 0, "a null byte is not Python source"));
    return std::nullopt;
  }
  const auto* begin = reinterpret_cast<const llvm::UTF8*>(text.data());
  const auto* p = begin;
  if (!llvm::isLegalUTF8String(&p, begin + text.size())) {
    if (!names_other_encoding(source)) {
      diags.add(diagnostic_at(source, p - begin, 0,
                              "not UTF-8, and no coding line names another encoding"));
      return std::nullopt;
    }
    // What the bytes mean is the interpreter's matter: to the grammar each is one letter.
    for (char& c : text)
      if (static_cast<unsigned char>(c) >= 0x80) c = 'x';
  }
  // A lone carriage return ends a line for CPython, not for the grammar.
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\r' && (i + 1 == text.size() || text[i + 1] != '\n')) text[i] = '\n';
  return text;
}

// Soft keywords read as statements. `type(x).attr = v` comes out as a type alias and `print (x)`
// may as Python 2's statement; another word of the same length makes them the calls they are, and
// Python 2 the error it is. True if a word changed.
bool disarm_keywords(TSNode root, std::string& text) {
  bool changed = false;
  walk(root, [&](Node node, uint32_t) {
    Kind kind = node.kind();
    if (kind == Kind::type_alias_statement) {
      Node left = node.field(Field::left);
      char first = left ? text[left.start()] : ' ';
      if (!std::isalpha(static_cast<unsigned char>(first)) && first != '_' && first >= 0) {
        text[node.start() + 3] = 'f';  // typf
        changed = true;
      }
    } else if (kind == Kind::print_statement || kind == Kind::exec_statement) {
      text[node.start() + 3] = 'x';  // prixt, exex
      changed = true;
    }
    return true;
  });
  return changed;
}

void report_error(const SourceFile& source, TSNode root, Diagnostics& diags) {
  Node found{};
  walk(root, [&](Node node, uint32_t) {
    if (found || !(ts_node_has_error(node.raw) || ts_node_is_missing(node.raw))) return false;
    if (ts_node_is_error(node.raw) || ts_node_is_missing(node.raw)) {
      found = node;
      // An error that spans statements says little: its last error inside is nearer the fault.
      return false;
    }
    return true;
  });
  uint32_t offset = found ? found.start() : 0;
  std::string message = "this does not parse as Python 3";
  uint32_t length = 0;
  if (found && ts_node_is_missing(found.raw)) {
    message = std::string("expected '") + found.type() + "'";
  } else if (found) {
    uint32_t line_end = source.offset_of(source.line_of(offset), UINT32_MAX);
    uint32_t end = std::min(found.end(), line_end);
    length = source.column_of(end) - source.column_of(offset);
  }
  diags.add(diagnostic_at(source, offset, length, std::move(message)));
}

}  // namespace

Kind Node::kind() const {
  TSSymbol symbol = ts_node_symbol(raw);
  return symbol < kinds().size() ? kinds()[symbol] : Kind::other;  // ERROR is 65535
}

Node Node::field(Field field) const { return {ts_node_child_by_field_id(raw, field_id(field))}; }

std::vector<Node> Node::children() const {
  std::vector<Node> result;
  Cursor cursor(raw);
  for (bool more = ts_tree_cursor_goto_first_child(&cursor.raw); more;
       more = ts_tree_cursor_goto_next_sibling(&cursor.raw))
    result.push_back({ts_tree_cursor_current_node(&cursor.raw)});
  return result;
}

std::vector<Node> Node::named_children() const {
  std::vector<Node> result;
  Cursor cursor(raw);
  for (bool more = ts_tree_cursor_goto_first_child(&cursor.raw); more;
       more = ts_tree_cursor_goto_next_sibling(&cursor.raw)) {
    Node child{ts_tree_cursor_current_node(&cursor.raw)};
    if (child.named() && !ts_node_is_extra(child.raw)) result.push_back(child);
  }
  return result;
}

std::vector<Node> Node::fields(Field field) const {
  std::vector<Node> result;
  Cursor cursor(raw);
  TSFieldId wanted = field_id(field);
  for (bool more = ts_tree_cursor_goto_first_child(&cursor.raw); more;
       more = ts_tree_cursor_goto_next_sibling(&cursor.raw))
    if (ts_tree_cursor_current_field_id(&cursor.raw) == wanted)
      result.push_back({ts_tree_cursor_current_node(&cursor.raw)});
  return result;
}

uint32_t expression_start(Node node) {
  for (Node n = node; n; n = Node{ts_node_child(n.raw, 0)}) {
    Kind kind = n.kind();
    if (kind != Kind::list_splat && kind != Kind::list_splat_pattern) continue;
    if (n.start() != node.start()) break;
    std::vector<Node> inner = n.named_children();
    return inner.empty() ? node.start() : expression_start(inner.front());
  }
  return node.start();
}

std::optional<Tree> parse_tree(const SourceFile& source, Diagnostics& diags) {
  std::optional<std::string> text = readable(source, diags);
  if (!text) return std::nullopt;
  std::unique_ptr<TSParser, void (*)(TSParser*)> parser(ts_parser_new(), ts_parser_delete);
  ts_parser_set_language(parser.get(), tree_sitter_python());
  auto parse = [&] {
    return Tree(ts_parser_parse_string(parser.get(), nullptr, text->data(), text->size()));
  };
  Tree tree = parse();
  if (disarm_keywords(tree.root().raw, *text)) tree = parse();
  if (ts_node_has_error(tree.root().raw)) {
    report_error(source, tree.root().raw, diags);
    return std::nullopt;
  }
  std::optional<uint32_t> too_deep;
  walk(tree.root().raw, [&](Node node, uint32_t depth) {
    if (depth > kMaxDepth && !too_deep) too_deep = node.start();
    return !too_deep;
  });
  if (too_deep) {
    diags.add(diagnostic_at(source, *too_deep, 0, "nested too deeply"));
    return std::nullopt;
  }
  return tree;
}

}  // namespace opguard
