// One walk over a file: its functions with their parameters, and those calls that were asked for.
//
//   @cached
//   def f(q, /, *, k: T = None, **rest):    parameters q, k with the fallback `None`, rest
//       q = q * 2                           q is rebound: what the caller gave is known no more
//
//   f(x, *xs, k=h[0])                       "x", * "xs", k "h[0]"
//
// A lone `*` or `/` is no parameter. A function's first line is that of its decorators.
// Counterexample: a name bound in a nested function counts as bound here as well. That loses a
// comparison, and never makes a false one.
//
// The cost: a parse and a walk of the file; the bodies of nested functions are walked once a level.
#include "parser/functions.h"

#include <algorithm>
#include <string_view>

#include "parser/shape.h"
#include "parser/tree.h"
#include "support/diagnostics.h"

namespace opguard {
namespace {

class Reader {
 public:
  Reader(const SourceFile& source, const Tree& tree, const std::set<Span>& calls)
      : source_(source), calls_(calls), shapes_(source.text), root_(tree.root()) {}

  FileFacts run() {
    visit(root_, "");
    return std::move(facts_);
  }

 private:
  std::string_view text(Node node) const {
    return std::string_view(source_.text).substr(node.start(), node.end() - node.start());
  }

  void visit(Node node, const std::string& scope) {
    std::string inner = scope;
    if (node.kind() == Kind::function_definition || node.kind() == Kind::class_definition) {
      const std::string name(text(node.field(Field::name)));
      inner = scope.empty() ? name : scope + "." + name;
      if (node.kind() == Kind::function_definition) add_function(node, inner);
    }
    if (node.kind() == Kind::call) add_call(node);
    node.each_named_child([&](Node child) { visit(child, inner); });
  }

  void add_function(Node node, const std::string& scope) {
    Function function;
    function.scope = scope;
    function.line = source_.line_of(node.start());
    const Node outer = node.parent();
    function.first = outer && outer.kind() == Kind::decorated_definition
                         ? source_.line_of(outer.start())
                         : function.line;
    function.last = source_.line_of(node.end());
    node.field(Field::parameters).each_named_child([&](Node child) {
      FunctionParameter parameter;
      const Node name = named(child);
      if (!name) return;  // a lone * or /
      parameter.name = text(name);
      if (child.kind() == Kind::default_parameter || child.kind() == Kind::typed_default_parameter)
        parameter.fallback = expression_line(text(child.field(Field::value)));
      function.parameters.push_back(std::move(parameter));
    });
    std::set<std::string> bound;
    collect_bound(node.field(Field::body), bound);
    for (FunctionParameter& parameter : function.parameters)
      parameter.rebound = bound.contains(parameter.name);
    facts_.functions.push_back(std::move(function));
  }

  // x, x: T, x=1, *x, **x
  static Node named(Node parameter) {
    if (parameter.kind() == Kind::identifier) return parameter;
    if (Node name = parameter.field(Field::name)) return named(name);
    const Node first = parameter.first_named_child();
    return first ? named(first) : Node();
  }

  // Names that statements of a body give a value.
  void collect_bound(Node node, std::set<std::string>& bound) const {
    if (!node) return;
    switch (node.kind()) {
      case Kind::assignment:
      case Kind::augmented_assignment:
      case Kind::for_statement:
      case Kind::for_in_clause:
        take(node.field(Field::left), bound);
        break;
      case Kind::named_expression:
        take(node.field(Field::name), bound);
        break;
      case Kind::as_pattern_target:
      case Kind::delete_statement:
        node.each_named_child([&](Node child) { take(child, bound); });
        break;
      default:
        break;
    }
    node.each_named_child([&](Node child) { collect_bound(child, bound); });
  }

  void take(Node left, std::set<std::string>& bound) const {
    std::vector<std::string> names;
    if (left) shapes_.add_targets(left, names);
    bound.insert(names.begin(), names.end());
  }

  void add_call(Node node) {
    const Span span{expression_start(node), node.end()};
    if (!calls_.contains(span)) return;
    std::vector<Argument>& arguments = facts_.arguments[span];
    node.field(Field::arguments).each_named_child([&](Node child) {
      Argument argument;
      Node value = child;
      if (child.kind() == Kind::keyword_argument) {
        argument.name = text(child.field(Field::name));
        value = child.field(Field::value);
      } else if (child.kind() == Kind::list_splat || child.kind() == Kind::dictionary_splat) {
        argument.name = child.kind() == Kind::list_splat ? "*" : "**";
        value = child.first_named_child();
      }
      argument.text = expression_line(text(value));
      arguments.push_back(std::move(argument));
    });
  }

  const SourceFile& source_;
  const std::set<Span>& calls_;
  const Shapes shapes_;
  const Node root_;
  FileFacts facts_;
};

}  // namespace

FileFacts read_facts(const SourceFile& source, const std::set<Span>& calls) {
  Diagnostics unused;  // parse_sites() has said what is wrong with it
  const std::optional<Tree> tree = parse_tree(source, unused);
  return tree ? Reader(source, *tree, calls).run() : FileFacts{};
}

}  // namespace opguard
