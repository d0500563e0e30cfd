// The sites of expressions: calls, operators, comparisons, subscripts, attributes, f-strings.
//
//   f(x)            operand f, which the probe wraps: og("f", f)(x)
//   a + b           operand a, the left one; the right one is an argument
//   a < b < c       two comparisons, operands a and b, told apart by chain:0 and chain:1
//   x in s          operand s: it is asked whether it holds x
//   f"{loss:.3f}"   operand loss
//
// A site is refused where the wrapped text would mean something else. `super()` looks at its
// caller's frame, and `f"{x=}"` prints its own text. Counterexamples: `x is y`, `-1`, `"a" + b` and
// `+x` are no sites. None of them computes on a tensor, or it gives the same one.
#include <algorithm>

#include "parser/probe_text.h"
#include "parser/walker.h"

namespace opguard {
namespace {

// Builtins that read their caller's frame or need their own name at the call.
bool depends_on_frame(std::string_view name) {
  static const std::set<std::string_view> names = {"super", "locals", "globals", "vars",
                                                   "dir",   "eval",   "exec"};
  return names.contains(name);
}

}  // namespace

void Walker::visit_comprehension(Node node) {
  for (Node child : node.named_children()) {
    // Its clauses before its body: the body is evaluated last, and is written first.
    if (child.kind() == Kind::for_in_clause) visit(child);
    if (child.kind() == Kind::if_clause) visit_test(child.named_children()[0], span(node));
  }
  visit(node.field(Field::body));
}

void Walker::visit_conditional(Node node) {
  std::vector<Node> parts = node.named_children();  // value, condition, alternative
  if (parts.size() != 3) return visit_children(node);
  visit_test(parts[1], span(node));
  visit(parts[0]);
  visit(parts[2]);
}

void Walker::visit_not(Node node) {
  Node argument = inside(node.field(Field::argument));
  visit(argument);
  add_truth(span(node), argument, false);
}

void Walker::visit_interpolation(Node node) {
  std::vector<Node> parts = node.named_children();
  if (parts.empty()) return;
  std::string_view why;
  if (free_quote(strings_) == 0) why = "inside f-strings of both quotes";
  for (Node child : node.children())
    if (std::string_view(child.type()) == "=") why = "its text is printed";
  Restore quoted(refusal_, refusal_or(why));
  Node value = parts[0];
  visit(value);
  for (size_t i = 1; i < parts.size(); ++i)
    for (Node nested : parts[i].named_children())
      if (nested.kind() == Kind::interpolation) visit_interpolation(nested);
  // Text is not asked how it is to be printed.
  if (value.kind() == Kind::string || value.kind() == Kind::concatenated_string) return;
  Site& site = add(Form::format, span(node), inside(value), "format");
  site.receiver = shapes_.shortened(value);
  site.arguments = {shapes_.argument(value)};
  if (value.kind() == Kind::expression_list || value.kind() == Kind::pattern_list)
    refuse(site, "a tuple without parentheses");
  if (value.kind() == Kind::yield) refuse(site, "a yield without parentheses");
}

void Walker::visit_attribute(Node node) {
  Node object = node.field(Field::object);
  visit(object);
  std::string name = shapes_.text(node.field(Field::attribute));
  Site& site = add(Form::read, node, object, "." + name);
  site.receiver = shapes_.shortened(object);
  // `x.iadd` read through a probe would give the probe's own method.
  if (!augment_operator(name).empty()) refuse(site, "a probe has an attribute of this name");
  if (in_bases_) refuse(site, "in a class's bases");
}

void Walker::visit_callee(Node function) {
  Node bare = without_parentheses(function);
  if (bare.kind() == Kind::list_splat && !bare.named_children().empty())
    return visit_callee(bare.named_children()[0]);
  bare.kind() == Kind::attribute ? visit(bare.field(Field::object)) : visit(function);
}

void Walker::visit_call(Node node) {
  Node function = node.field(Field::function), arguments = node.field(Field::arguments);
  visit_callee(function);
  visit(arguments);
  Site& site = add(Form::call, node, function, shapes_.callee(function));
  if (Node bare = without_parentheses(function); bare.kind() == Kind::attribute)
    site.receiver = shapes_.shortened(bare.field(Field::object));
  site.arguments = shapes_.arguments(arguments);
  if (depends_on_frame(shapes_.dotted(without_parentheses(function))))
    refuse(site, "depends on its frame");
}

std::string Walker::and_or_xor(Node node) const {
  if (node.kind() != Kind::binary_operator) return "";
  std::string op = shapes_.text(node.field(Field::operator_));
  return op == "&" || op == "^" ? op : "";
}

bool Walker::mixes_and_xor(Node node, const std::string& parent) const {
  std::string op = and_or_xor(node);
  if (op.empty()) return false;
  return (!parent.empty() && op != parent) || mixes_and_xor(node.field(Field::left), op) ||
         mixes_and_xor(node.field(Field::right), op);
}

void Walker::visit_binary(Node node, std::string_view why) {
  constexpr std::string_view kMixed = "^ and & without parentheses";
  Node left = node.field(Field::left), right = node.field(Field::right);
  std::string op = shapes_.text(node.field(Field::operator_));
  if (why.empty() && mixes_and_xor(node, "")) why = kMixed;
  for (Node side : {left, right}) {
    if (why == kMixed && !and_or_xor(side).empty())
      visit_binary(side, kMixed);
    else
      visit(side);
  }
  Kind bare = without_parentheses(left).kind();
  if (bare == Kind::string || bare == Kind::concatenated_string) return;  // text, not tensors
  Site& site = add(Form::binary, node, left, op);
  site.receiver = shapes_.shortened(left);
  site.arguments = {shapes_.argument(right)};
  refuse(site, why);
}

void Walker::visit_unary(Node node) {
  Node argument = node.field(Field::argument);
  visit(argument);
  std::string op = shapes_.text(node.field(Field::operator_));
  bool literal = argument.kind() == Kind::integer || argument.kind() == Kind::float_;
  if (op == "+" || literal) return;
  add(Form::unary, node, argument, op).receiver = shapes_.shortened(argument);
}

// Of all comparison operators only `in`, `is` and their negations have an "i".
bool Walker::compares(Node op) {
  std::string_view text = op.type();
  return text.find('i') == text.npos;
}

void Walker::visit_comparison(Node node) {
  visit_children(node);
  std::vector<Node> operators = node.fields(Field::operators), operands = node.named_children();
  if (operators.empty() || operands.size() != operators.size() + 1) return;
  size_t comparisons =
      static_cast<size_t>(std::count_if(operators.begin(), operators.end(), compares));
  if (operators.size() == 1 && comparisons == 0) return visit_contains(node, operators[0]);
  // Each operand but the last is the left one of a comparison; it stays one value on both sides.
  for (size_t i = 0; i < operators.size(); ++i) {
    Site& site = add(Form::compare, node, operands[i], operators[i].type());
    site.receiver = shapes_.shortened(operands[i]);
    site.arguments = {shapes_.argument(operands[i + 1])};
    if (operators.size() > 1) site.arguments.push_back("chain:" + std::to_string(i));
    if (comparisons < operators.size()) refuse(site, "chained with in or is");
  }
}

void Walker::visit_contains(Node node, Node op) {
  std::vector<Node> operands = node.named_children();
  bool text = operands[1].kind() == Kind::string;
  if (std::string_view(op.type()).find("in") == std::string_view::npos || text) return;
  Site& site = add(Form::contains, node, operands[1], "in");
  site.receiver = shapes_.shortened(operands[1]);
  site.arguments = {shapes_.argument(operands[0])};
}

void Walker::visit_subscript(Node node, const char* callee) {
  Node value = node.field(Field::value);
  visit(value);
  for (Node index : node.fields(Field::subscript))
    if (index.named()) visit_item(index);
  Site& site = add(Form::subscript, node, value, callee);
  site.receiver = shapes_.shortened(value);
  for (Node index : node.fields(Field::subscript))
    if (index.named()) site.arguments.push_back(shapes_.argument(index));
  if (in_bases_) refuse(site, "in a class's bases");
}

void Walker::visit_await(Node node) {
  for (Node child : node.named_children()) {
    // What the grammar took for one operand is two for Python, so neither the operator nor the
    // await can be wrapped here.
    bool misread = child.kind() == Kind::binary_operator;
    misread ? visit_binary(child, "after await") : visit(child);
    Site& site = add(Form::await, node, child, "await");
    site.receiver = shapes_.shortened(child);
    site.arguments = {shapes_.argument(child)};
    if (misread) refuse(site, "after await");
  }
}

void Walker::visit_yield(Node node) {
  visit_children(node);
  std::vector<Node> children = node.children();
  if (children.size() < 3 || std::string_view(children[1].type()) != "from") return;
  add_iterate(node, node.named_children().front());
}

}  // namespace opguard
