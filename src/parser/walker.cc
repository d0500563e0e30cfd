// Scopes, and what every site has in common. visit() says for each kind of node who looks after it.
//
//   class Block:
//       def forward(self, x):        scope "Block.forward"
//           if x.requires_grad:      block "if x.requires_grad"
//               y = self.norm(x)     targets ["y"]; receiver "self"
//
// Restore sets a member for as long as a node is visited. So a site reads its surroundings from the
// walker, and nothing is handed down.
//
// A place where a probe would change the program is a site with a refusal, and never left out: the
// reader is told why. Counterexample: inside @torch.jit.script a probe is a call that the compiler
// does not know. Annotations and patterns of `match` are no sites: nothing is computed there.
#include "parser/walker.h"

#include <algorithm>
#include <cctype>

#include "parser/import_line.h"

namespace opguard {
namespace {

// Compilers that read a function's source: a probe would be a call they do not know.
bool is_jit(std::string_view dotted) {
  std::string_view last = dotted.substr(dotted.rfind('.') + 1);
  if (last == "script" || last == "script_method" || last == "script_if_tracing" ||
      last == "prim_func" || last == "kernel")
    return true;
  while (!dotted.empty()) {
    std::string_view component = dotted.substr(0, dotted.find('.'));
    if (component.ends_with("jit")) return true;
    dotted.remove_prefix(std::min(dotted.size(), component.size() + 1));
  }
  return false;
}

}  // namespace

std::vector<Site> Walker::run() {
  // A search of the text is cheaper than a walk, and most files have neither word.
  if (source_.text.find("jit") != std::string::npos ||
      source_.text.find("script") != std::string::npos)
    find_compiled_functions(tree_.root());
  visit(tree_.root());
  // A probe uses what the import line binds, so nothing above it can carry one.
  uint32_t import_offset = find_import_place(source_, tree_).offset;
  for (Site& site : sites_)
    if (site.start < import_offset && site.refusal.empty()) site.refusal = "before the import line";
  if (wanted_) std::erase_if(sites_, [&](const Site& s) { return !wanted_->contains(s.scope); });
  return std::move(sites_);
}

void Walker::find_compiled_functions(Node node) {
  if (node.kind() == Kind::call && is_jit(shapes_.dotted(node.field(Field::function)))) {
    std::vector<Node> arguments = node.field(Field::arguments).named_children();
    if (!arguments.empty() && arguments[0].kind() == Kind::identifier)
      compiled_.insert(shapes_.text(arguments[0]));
  }
  node.each_named_child([&](Node child) { find_compiled_functions(child); });
}

//   @torch.jit.script    @numba.njit(cache=True)    @partial(jit, static_argnums=0)
bool Walker::is_jit_decorator(Node decorator) {
  std::vector<Node> inner = decorator.named_children();
  if (inner.empty()) return false;
  Node expression = inner[0];
  if (expression.kind() != Kind::call) return is_jit(shapes_.dotted(expression));
  if (is_jit(shapes_.dotted(expression.field(Field::function)))) return true;
  for (Node argument : expression.field(Field::arguments).named_children())
    if (is_jit(shapes_.dotted(argument))) return true;  // partial(jit, ...)
  return false;
}

// The reason of what is around stays: it holds for all that is inside.
std::string_view Walker::refusal_or(std::string_view refusal) const {
  return refusal_.empty() ? refusal : refusal_;
}

Walker::Span Walker::separate(Node operand, std::string_view& why) {
  // Behind a byte order mark nothing has begun yet.
  auto word = [&](uint32_t at) {
    if (at == 0 || (at == 3 && source_.text.starts_with("\xef\xbb\xbf"))) return false;
    auto c = static_cast<unsigned char>(source_.text[at - 1]);
    return c == '_' || c >= 0x80 || std::isalnum(c);
  };
  while (word(expression_start(operand))) {
    std::vector<Node> inner = operand.named_children();
    bool enters = operand.kind() == Kind::parenthesized_expression && inner.size() == 1 &&
                  inner[0].kind() != Kind::yield && operand.start() == expression_start(operand);
    if (!enters) {
      why = "no blank before it";
      break;
    }
    operand = inner[0];
  }
  return span(operand);
}

Site& Walker::add(Form form, Node whole, Node operand, std::string callee) {
  return add(form, span(whole), operand, std::move(callee));
}

Site& Walker::add(Form form, Span whole, Node operand, std::string callee) {
  std::string_view why;
  Span inner = separate(operand, why);
  Site& site = add(form, whole, inner, std::move(callee));
  refuse(site, why);
  return site;
}

Site& Walker::add(Form form, Span whole, Span operand, std::string callee) {
  Site site;
  site.package = source_.package;
  site.file = source_.name;
  site.form = form;
  site.callee = std::move(callee);
  site.start = whole.start;
  site.end = whole.end;
  site.operand_start = operand.start;
  site.operand_end = operand.end;
  site.line = source_.line_of(site.start);
  site.column = source_.column_of(site.start);
  site.end_line = source_.line_of(site.end);
  site.end_column = source_.column_of(site.end);
  site.scope = scope_.empty() ? "<module>" : scope_;
  site.block = block_;
  site.targets = targets_;
  site.order = static_cast<uint32_t>(sites_.size());
  site.refusal = refusal_;
  sites_.push_back(std::move(site));
  return sites_.back();
}

void Walker::refuse(Site& site, std::string_view why) {
  if (site.refusal.empty()) site.refusal = why;
}

void Walker::visit_children(Node node) {
  node.each_named_child([&](Node child) { visit(child); });
}

void Walker::visit_block(Node block) {
  Node statement = block.parent();
  if (statement.kind() == Kind::function_definition || statement.kind() == Kind::class_definition)
    return visit_children(block);
  Restore inside(block_, (block_.empty() ? "" : block_ + "; ") + shapes_.header(statement, block));
  visit_children(block);
}

void Walker::visit_items(Node node) {
  for (Node child : node.named_children()) visit_item(child);
}

void Walker::visit_item(Node child) {
  visit(child);
  // `*a.b(c)` comes as a call that begins at its star: the expression begins behind it, and the
  // star makes an iteration.
  bool star = child.kind() == Kind::list_splat;
  uint32_t start = expression_start(child);
  if (!star && start == child.start()) return;
  Node operand = star && !child.named_children().empty() ? child.named_children()[0] : child;
  Site& site =
      add(Form::iterate, Span{child.start(), child.end()}, Span{start, child.end()}, kUnpack);
  site.receiver = shapes_.shortened(operand);
  site.arguments = {shapes_.argument(operand)};
}

Node Walker::inside(Node node) {
  Node inner = without_parentheses(node);
  bool needs = inner.kind() == Kind::yield;
  return needs ? node : inner;
}

void Walker::visit(Node node) {
  switch (node.kind()) {
    case Kind::identifier:
    case Kind::comment:
    case Kind::type:
    case Kind::type_parameter:
    case Kind::type_alias_statement:
    case Kind::case_pattern:
      return;  // names, annotations and patterns apply no operator
    case Kind::block:
      return visit_block(node);
    case Kind::function_definition:
      return visit_function(node);
    case Kind::class_definition:
      return visit_class(node);
    case Kind::decorated_definition:
      return visit_decorated(node);
    case Kind::parameters:
    case Kind::lambda_parameters:
      return visit_parameters(node);
    case Kind::lambda:
      return visit_lambda(node);
    case Kind::assignment:
      return visit_assignment(node);
    case Kind::augmented_assignment:
      return visit_augmented(node);
    case Kind::for_statement:
      return visit_for(node);
    case Kind::for_in_clause:
      return visit_loop(node);
    case Kind::if_clause:  // of a case
      for (Node child : node.named_children()) visit_test(child, span(inside(child)));
      return;
    case Kind::list_comprehension:
    case Kind::set_comprehension:
    case Kind::dictionary_comprehension:
    case Kind::generator_expression:
      return visit_comprehension(node);
    case Kind::conditional_expression:
      return visit_conditional(node);
    case Kind::delete_statement:
      for (Node child : node.named_children()) visit_unstored(child);
      return;
    case Kind::as_pattern: {
      for (Node child : node.named_children())
        child.kind() == Kind::as_pattern_target ? visit_target(child) : visit(child);
      return;
    }
    case Kind::string: {
      std::vector<Node> parts = node.named_children();
      if (parts.size() < 2) return;
      strings_.push_back(quote_of(node, source_.text));
      for (Node part : parts)
        if (part.kind() == Kind::interpolation) visit_interpolation(part);
      strings_.pop_back();
      return;
    }
    case Kind::pair:
      return visit_pair(node);
    case Kind::argument_list:
    case Kind::list:
    case Kind::tuple:
    case Kind::set:
    case Kind::expression_list:
      return visit_items(node);
    case Kind::attribute:
      return visit_attribute(node);
    case Kind::if_statement:
    case Kind::elif_clause:
    case Kind::while_statement:
      return visit_tested(node);
    case Kind::assert_statement:
      return visit_assert(node);
    case Kind::not_operator:
      return visit_not(node);
    case Kind::with_statement:
      return visit_with(node);
    case Kind::call:
      return visit_call(node);
    case Kind::binary_operator:
      return visit_binary(node, "");
    case Kind::unary_operator:
      return visit_unary(node);
    case Kind::comparison_operator:
      return visit_comparison(node);
    case Kind::subscript:
      return visit_subscript(node, "[]");
    case Kind::await:
      return visit_await(node);
    case Kind::yield:
      return visit_yield(node);
    default:
      return visit_children(node);
  }
}

// "Block" is entered for "Block.forward" too. Names are sorted, so the one behind "Block." in order
// tells.
bool Walker::enters() const {
  if (!wanted_) return true;
  auto next = wanted_->lower_bound(scope_);
  if (next != wanted_->end() && *next == scope_) return true;
  next = wanted_->lower_bound(scope_ + ".");
  return next != wanted_->end() && next->starts_with(scope_ + ".");
}

std::string Walker::nested(const std::string& name) const {
  return scope_.empty() ? name : scope_ + "." + name;
}

void Walker::visit_function(Node node) {
  std::string name = shapes_.text(node.field(Field::name));
  // By its bare name: `torch.jit.script(f)` may stand anywhere in the file.
  bool compiled = compiled_.contains(name);
  Restore jit(refusal_, refusal_or(compiled ? "in a jit function" : ""));
  // Defaults are computed where the function is defined, in the scope around it.
  visit(node.field(Field::parameters));
  Restore scope(scope_, nested(name));
  Restore block(block_, std::string());
  if (enters()) visit(node.field(Field::body));
}

void Walker::visit_class(Node node) {
  if (Node bases = node.field(Field::superclasses)) {
    Restore inside(in_bases_, true);
    visit(bases);
  }
  Restore scope(scope_, nested(shapes_.text(node.field(Field::name))));
  Restore block(block_, std::string());
  if (enters()) visit(node.field(Field::body));
}

void Walker::visit_decorated(Node node) {
  bool jit = false;
  std::vector<Node> decorators;
  for (Node child : node.named_children())
    if (child.kind() == Kind::decorator && !child.named_children().empty()) {
      jit = jit || is_jit_decorator(child);
      decorators.push_back(child.named_children()[0]);
    }
  // These compilers look for themselves among the decorators.
  Restore inside(refusal_, refusal_or(jit ? "in a jit function" : ""));
  const Node definition = node.field(Field::definition);
  // What a decorator makes is called as the definition is.
  std::vector<std::string> names{shapes_.text(definition.field(Field::name))};
  {
    Restore made(targets_, names);
    for (Node decorator : decorators) visit_callee(decorator);
  }
  visit(definition);
  // The innermost is applied first.
  Restore made(targets_, names);
  for (size_t i = decorators.size(); i-- > 0;) {
    Site& site = add(Form::call, decorators[i], decorators[i], "@" + shapes_.callee(decorators[i]));
    site.arguments = {"definition"};
  }
}

void Walker::visit_parameters(Node node) {
  for (Node child : node.named_children())
    if (child.kind() == Kind::default_parameter || child.kind() == Kind::typed_default_parameter)
      visit(child.field(Field::value));
}

void Walker::visit_lambda(Node node) {
  if (Node parameters = node.field(Field::parameters)) visit(parameters);
  Restore scope(scope_, nested("<lambda>"));
  Restore block(block_, std::string());
  if (enters()) visit(node.field(Field::body));
}

}  // namespace opguard
