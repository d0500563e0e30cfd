// parser/tree.h: a concrete syntax tree of Python text, with the grammar's known faults mended.
//
//   y = f(x)      0 module                        after 11
//                 1   expression_statement        after 11, parent 0
//                 2     assignment                after 11, parent 1
//                 3       identifier y  (left)    after 4
//                 4       =                       after 5: not named
//                 5       call          (right)   after 11
//                 6         identifier f          after 7
//                 7         argument_list         after 11; `(`, x and `)` are 8 to 10
//
// All of a node lies between its own index and `after`. The next sibling is at `after`, so a
// subtree is stepped over by one look.
//
// Counterexample: offsets count bytes, columns of a Site characters. SourceFile turns one into the
// other.
//
// The cost: 20 bytes for each node, brackets and operators included.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "support/diagnostics.h"
#include "support/source.h"

namespace opguard {

// Node kinds the stage knows; every other is `other`.
enum class Kind : uint8_t {
  other,
  comment,
  module,
  block,
  // expressions
  identifier,
  attribute,
  subscript,
  slice,
  call,
  argument_list,
  keyword_argument,
  binary_operator,
  unary_operator,
  comparison_operator,
  boolean_operator,
  not_operator,
  conditional_expression,
  named_expression,
  parenthesized_expression,
  lambda,
  await,
  yield,
  list,
  tuple,
  set,
  dictionary,
  pair,
  list_comprehension,
  set_comprehension,
  dictionary_comprehension,
  generator_expression,
  for_in_clause,
  if_clause,
  elif_clause,
  list_splat,
  dictionary_splat,
  expression_list,
  string,
  concatenated_string,
  interpolation,
  integer,
  float_,
  true_,
  false_,
  none,
  ellipsis,
  as_pattern,
  as_pattern_target,
  pattern_list,
  tuple_pattern,
  list_pattern,
  list_splat_pattern,
  // statements
  expression_statement,
  assignment,
  augmented_assignment,
  if_statement,
  while_statement,
  assert_statement,
  with_statement,
  with_clause,
  with_item,
  for_statement,
  delete_statement,
  function_definition,
  class_definition,
  decorated_definition,
  decorator,
  case_pattern,
  default_parameter,
  typed_default_parameter,
  lambda_parameters,
  parameters,
  type,
  type_parameter,
  type_alias_statement,
  print_statement,
  exec_statement,
  import_from_statement,
  future_import_statement,
};

enum class Field : uint8_t {
  alias,
  alternative,
  arguments,
  attribute,
  body,
  definition,
  function,
  left,
  name,
  object,
  operator_,
  operators,
  parameters,
  right,
  subscript,
  superclasses,
  type,
  value,
  argument,
  consequence,
  condition,
};

// A node of a Tree. The whole tree is kept in the order of a walk, so that a node's children follow
// it. Reading tree-sitter's own nodes, each found from the root again, costs more than parsing.
struct TreeItem {
  uint32_t start, end;  // bytes
  uint32_t after;       // index of the first item behind the subtree
  uint32_t parent;      // index; the root is its own
  uint16_t symbol;
  Kind kind;
  uint8_t field : 6;  // tree-sitter's id, 0: none
  bool named : 1;
  bool extra : 1;  // a comment, a line continuation
};

// A handle to a node; valid while its Tree lives.
class Node {
 public:
  Node() = default;
  Node(const TreeItem* items, uint32_t index) : items_(items), index_(index) {}

  explicit operator bool() const { return items_ != nullptr; }
  bool operator==(const Node&) const = default;
  Kind kind() const { return items_ ? item().kind : Kind::other; }
  uint32_t index() const { return index_; }  // in Tree::items
  uint32_t start() const { return item().start; }
  uint32_t end() const { return item().end; }
  // The first child of that field; none where there is none.
  Node field(Field field) const;
  Node parent() const { return index_ == 0 ? Node() : Node(items_, item().parent); }
  bool named() const { return item().named; }
  // The grammar's own name of the node; of an operator its text: "+", "not in".
  const char* type() const;
  std::vector<Node> children() const;        // with the anonymous ones (operators, brackets)
  std::vector<Node> named_children() const;  // without comments
  // Those of a field that may repeat, as the operators of `a < b < c`.
  std::vector<Node> fields(Field field) const;

  // use(child) for each of named_children().
  template <typename Use>
  void each_named_child(Use use) const {
    if (!items_) return;
    for (uint32_t i = index_ + 1; i < item().after; i = items_[i].after)
      if (items_[i].named && !items_[i].extra) use(Node(items_, i));
  }
  Node first_child() const {
    return items_ && index_ + 1 < item().after ? Node(items_, index_ + 1) : Node();
  }
  Node first_named_child() const;

 private:
  const TreeItem& item() const { return items_[index_]; }

  const TreeItem* items_ = nullptr;
  uint32_t index_ = 0;
};

// Where an expression starts. The grammar attaches the star of `*a.b(c)` to `a`: it then belongs to
// no expression that begins there.
uint32_t expression_start(Node node);

class Tree {
 public:
  Node root() const { return {items_.data(), 0}; }
  const std::vector<TreeItem>& items() const { return items_; }

 private:
  friend std::optional<Tree> parse_tree(const SourceFile&, Diagnostics&);
  std::vector<TreeItem> items_;
};

// Nothing, and one diagnostic, for a text that is not Python. Offsets are those of source.text.
std::optional<Tree> parse_tree(const SourceFile& source, Diagnostics& diags);

// Whether parse_tree() would give a tree; the same diagnostics.
bool is_python(const SourceFile& source, Diagnostics& diags);

}  // namespace opguard
