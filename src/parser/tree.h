// parser/tree.h: a concrete syntax tree of Python text, with the grammar's known faults mended.
#pragma once

#include <tree_sitter/api.h>

#include <cstdint>
#include <memory>
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

// A handle to a node; valid while its Tree lives.
struct Node {
  TSNode raw{};

  explicit operator bool() const { return raw.id != nullptr && !ts_node_is_null(raw); }
  Kind kind() const;
  uint32_t start() const { return ts_node_start_byte(raw); }
  uint32_t end() const { return ts_node_end_byte(raw); }
  Node field(Field field) const;
  Node parent() const { return {ts_node_parent(raw)}; }
  bool named() const { return ts_node_is_named(raw); }
  const char* type() const { return ts_node_type(raw); }
  std::vector<Node> children() const;        // with the anonymous ones (operators, brackets)
  std::vector<Node> named_children() const;  // without comments
  // Those of a field that may repeat.
  std::vector<Node> fields(Field field) const;
};

// Where an expression starts. The grammar attaches the star of `*a.b(c)` to `a`: it then belongs to
// no expression that begins there.
uint32_t expression_start(Node node);

class Tree {
 public:
  Node root() const { return {ts_tree_root_node(tree_.get())}; }

 private:
  friend std::optional<Tree> parse_tree(const SourceFile&, Diagnostics&);
  explicit Tree(TSTree* tree) : tree_(tree, ts_tree_delete) {}
  std::unique_ptr<TSTree, void (*)(TSTree*)> tree_;
};

// Nothing, and one diagnostic, for a text that is not Python. Offsets are those of source.text.
std::optional<Tree> parse_tree(const SourceFile& source, Diagnostics& diags);

}  // namespace opguard
