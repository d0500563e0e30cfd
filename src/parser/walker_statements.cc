// The sites of statements: what they store into, iterate, test and enter.
//
//   a, b = f(x)          the call, and the unpacking of its value
//   x[0] = v             []= with operand x
//   p.data = v           .data= with operand p
//   x += y               += with operand x: it writes into the tensor, so it is no read and a store
//   for t in loader:     iter
//   if a and not b:      two tests, a and b: each is asked whether it is true
//   with ctx() as c:     with
//
// Counterexamples: `a, b = c, d` unpacks nothing, since no iterator is made. `if True:` and `if x
// is None:` never ask a tensor. `x: int` stores nothing, so `x` is not visited as a target.
#include <algorithm>

#include "parser/walker.h"

namespace opguard {

void Walker::visit_assignment(Node node) {
  std::vector<Node> lefts;
  std::vector<std::string> targets;
  Node right = node, left;
  bool bare = false;  // `x: int`
  // a = b = f(x): one value for all names, and the call has both as its targets.
  while (right && right.kind() == Kind::assignment) {
    left = right.field(Field::left);
    lefts.push_back(left);
    shapes_.add_targets(left, targets);
    bare = !right.field(Field::right);
    right = right.field(Field::right);
  }
  Restore statement(targets_, std::move(targets));
  if (right) {
    visit(right);
    visit_unpacking(node, lefts, right);
  }
  for (Node each : lefts) bare ? visit_unstored(each) : visit_target(each);
}

void Walker::visit_unpacking(Node assignment, const std::vector<Node>& lefts, Node right) {
  auto pattern = [](Node left) {
    return left.kind() == Kind::pattern_list || left.kind() == Kind::tuple_pattern ||
           left.kind() == Kind::list_pattern;
  };
  if (std::none_of(lefts.begin(), lefts.end(), pattern)) return;
  Node value = inside(right);
  for (Kind display : {Kind::expression_list, Kind::pattern_list, Kind::tuple, Kind::list})
    if (value.kind() == display) return;
  Site& site = add(Form::iterate, Span{assignment.start(), right.end()}, span(value), kUnpack);
  site.receiver = shapes_.shortened(value);
  site.arguments = {shapes_.argument(value)};
  // t = a, b = f(x): a probe around f(x) would be what t is bound to.
  if (!std::all_of(lefts.begin(), lefts.end(), pattern)) refuse(site, "its value is kept, too");
  if (right.kind() == Kind::yield) refuse(site, "a yield without parentheses");
}

void Walker::visit_target(Node node) {
  switch (node.kind()) {
    case Kind::subscript:
      return visit_subscript(node, "[]=");
    case Kind::attribute: {
      Node object = node.field(Field::object);
      visit(object);
      std::string name = shapes_.text(node.field(Field::attribute));
      add(Form::write, node, object, "." + name + "=").receiver = shapes_.shortened(object);
      return;
    }
    case Kind::tuple_pattern:
    case Kind::list_pattern:
    case Kind::pattern_list:
    case Kind::list_splat_pattern:
    case Kind::list_splat:
    case Kind::tuple:
    case Kind::list:
    case Kind::expression_list:
    case Kind::parenthesized_expression:
    case Kind::as_pattern_target:
      for (Node child : node.named_children()) visit_target(child);
      return;
    default:
      visit(node);
  }
}

void Walker::visit_unstored(Node node) {
  switch (node.kind()) {
    case Kind::subscript:
      return visit_children(node);
    case Kind::attribute:
      return visit(node.field(Field::object));
    case Kind::tuple:
    case Kind::list:
    case Kind::expression_list:
    case Kind::parenthesized_expression:
    case Kind::tuple_pattern:
    case Kind::list_pattern:
      for (Node child : node.named_children()) visit_unstored(child);
      return;
    default:
      visit(node);
  }
}

void Walker::visit_augmented(Node node) {
  Node left = node.field(Field::left), right = node.field(Field::right), operand = left;
  std::vector<std::string> targets;
  shapes_.add_targets(left, targets);
  Restore statement(targets_, std::move(targets));
  // The operand is what is written into: of x.a the object x, of x[i] the value x, of a name the
  // name itself.
  std::string_view why;
  if (left.kind() == Kind::attribute) {
    operand = left.field(Field::object);
    visit(operand);
  } else if (left.kind() == Kind::subscript) {
    operand = left.field(Field::value);
    visit_children(left);
  } else if (left.kind() != Kind::identifier) {
    why = "target in parentheses";
    visit(left);
  }
  visit(right);
  if (left.kind() == Kind::identifier) {
    // The value becomes an argument of a call.
    if (right.kind() == Kind::expression_list || right.kind() == Kind::pattern_list)
      why = "a tuple without parentheses";
    if (right.kind() == Kind::yield) why = "a yield without parentheses";
  }
  std::string op = shapes_.text(node.field(Field::operator_));
  Site& site = add(Form::augment, node, operand, op);
  site.receiver = shapes_.shortened(left);
  site.arguments = {shapes_.argument(right)};
  refuse(site, why);
}

void Walker::visit_for(Node node) {
  visit_loop(node);
  visit(node.field(Field::body));
  if (Node alternative = node.field(Field::alternative)) visit(alternative);
}

void Walker::visit_loop(Node node) {
  std::vector<Node> rights = node.fields(Field::right);
  Node left = node.field(Field::left);
  {
    std::vector<std::string> targets;
    shapes_.add_targets(left, targets);
    Restore loop(targets_, std::move(targets));
    // Fields of `right` hold commas too, where a tuple has no parentheses.
    std::vector<Node> iterated;
    for (Node right : rights)
      if (right.named()) iterated.push_back(right);
    for (Node right : iterated) visit(right);
    if (!iterated.empty()) {
      Site& site = add_iterate(iterated[0], iterated[0]);
      if (iterated.size() > 1) refuse(site, "a tuple without parentheses");
    }
  }
  visit_target(left);
}

Site& Walker::add_iterate(Node whole, Node iterated) {
  Site& site = add(Form::iterate, whole, iterated, "iter");
  site.receiver = shapes_.shortened(iterated);
  site.arguments = {shapes_.argument(iterated)};
  if (iterated.kind() == Kind::expression_list) refuse(site, "a tuple without parentheses");
  return site;
}

void Walker::visit_tested(Node node) {
  Node condition = node.field(Field::condition);
  visit_test(condition, {node.start(), condition.end()});
  for (Node child : node.named_children())
    if (child.start() != condition.start()) visit(child);
}

// A value of a dictionary is called by its key, as one of a variable is by that.
void Walker::visit_pair(Node node) {
  const std::vector<Node> parts = node.named_children();
  if (parts.size() != 2 || parts[0].kind() != Kind::string) return visit_children(node);
  visit(parts[0]);
  std::vector<std::string> targets = targets_;
  targets.push_back(shapes_.text(parts[0]) + ":");
  Restore value(targets_, std::move(targets));
  visit(parts[1]);
}

void Walker::visit_assert(Node node) {
  std::vector<Node> parts = node.named_children();
  for (size_t i = 0; i < parts.size(); ++i)
    i == 0 ? visit_test(parts[0], {node.start(), parts[0].end()}) : visit(parts[i]);
}

bool Walker::never_computes(Node node) const {
  switch (node.kind()) {
    case Kind::true_:
    case Kind::false_:
    case Kind::none:
    case Kind::ellipsis:
    case Kind::integer:
    case Kind::float_:
    case Kind::string:
    case Kind::concatenated_string:
    case Kind::list:
    case Kind::tuple:
    case Kind::set:
    case Kind::dictionary:
    case Kind::list_comprehension:
    case Kind::set_comprehension:
    case Kind::dictionary_comprehension:
    case Kind::lambda:
      return true;
    case Kind::identifier:
      return shapes_.text(node) == "__debug__";
    case Kind::comparison_operator: {
      std::vector<Node> operators = node.fields(Field::operators);
      return operators.size() == 1 && !compares(operators[0]);
    }
    default:
      return false;
  }
}

void Walker::visit_test(Node node, Span whole) {
  Node test = inside(node);
  switch (test.kind()) {
    case Kind::not_operator:
      return visit_test(test.field(Field::argument), whole);
    case Kind::boolean_operator:
      visit_test(test.field(Field::left), whole);
      return visit_test(test.field(Field::right), whole);
    case Kind::conditional_expression: {
      std::vector<Node> parts = test.named_children();
      if (parts.size() != 3) break;
      // The condition comes first, as CPython asks it.
      for (int i : {1, 0, 2}) visit_test(parts[static_cast<size_t>(i)], whole);
      return;
    }
    default:
      break;
  }
  visit(test);
  add_truth(whole, test,
            test.kind() == Kind::comparison_operator && test.fields(Field::operators).size() > 1);
}

// A literal or a comparison by `is` gives a bool that no tensor was asked for.
void Walker::add_truth(Span whole, Node test, bool chained) {
  if (never_computes(test)) return;
  Site& site = add(Form::truth, whole, test, "bool");
  site.receiver = shapes_.shortened(test);
  site.arguments = {shapes_.argument(test)};
  // Its first comparison would be tested twice.
  if (chained) refuse(site, "chained comparison");
}

void Walker::visit_with(Node node) {
  for (Node clause : node.named_children()) {
    if (clause.kind() != Kind::with_clause) continue;
    for (Node item : clause.named_children()) {
      Node value = item.field(Field::value), target;
      // `with (a() as b):`, one item in the statement's own parentheses.
      if (Node bare = without_parentheses(value); bare.kind() == Kind::as_pattern) value = bare;
      if (value.kind() == Kind::as_pattern) {
        target = value.field(Field::alias);
        value = value.named_children()[0];
      }
      value = inside(value);
      visit(value);
      Site& site = add(Form::enter, Span{node.start(), value.end()}, value, "with");
      site.receiver = shapes_.shortened(value);
      site.arguments = {shapes_.argument(value)};
      if (target) visit_target(target);
    }
  }
  visit(node.field(Field::body));
}

}  // namespace opguard
