#include "parser/parse.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "parser/import_line.h"
#include "parser/probe_text.h"
#include "parser/shape.h"
#include "parser/tree.h"

namespace opguard {
namespace {

// Builtins that read their caller's frame or need their own name at the call.
bool depends_on_frame(std::string_view name) {
  static const std::set<std::string_view> names = {"super", "locals", "globals", "vars",
                                                   "dir",   "eval",   "exec"};
  return names.contains(name);
}

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

template <typename T>
class Restore {
 public:
  Restore(T& place, T value) : place_(place), saved_(std::exchange(place, std::move(value))) {}
  ~Restore() { place_ = std::move(saved_); }
  Restore(const Restore&) = delete;

 private:
  T& place_;
  T saved_;
};

// Visits a tree in the order CPython evaluates it.
class Walker {
 public:
  Walker(const SourceFile& source, const Tree& tree)
      : source_(source), shapes_(source.text), tree_(tree) {}

  std::vector<Site> run() {
    if (source_.text.find("jit") != std::string::npos ||
        source_.text.find("script") != std::string::npos)
      find_compiled_functions(tree_.root());
    visit(tree_.root());
    uint32_t import_offset = find_import_place(source_, tree_).offset;
    for (Site& site : sites_)
      if (site.start < import_offset && site.refusal.empty())
        site.refusal = "before the import line";
    return std::move(sites_);
  }

 private:
  // f in torch.jit.script(f): as good as a decorator.
  void find_compiled_functions(Node node) {
    if (node.kind() == Kind::call && is_jit(shapes_.dotted(node.field(Field::function)))) {
      std::vector<Node> arguments = node.field(Field::arguments).named_children();
      if (!arguments.empty() && arguments[0].kind() == Kind::identifier)
        compiled_.insert(shapes_.text(arguments[0]));
    }
    for (Node child : node.named_children()) find_compiled_functions(child);
  }

  bool is_jit_decorator(Node decorator) {
    std::vector<Node> inner = decorator.named_children();
    if (inner.empty()) return false;
    Node expression = inner[0];
    if (expression.kind() != Kind::call) return is_jit(shapes_.dotted(expression));
    if (is_jit(shapes_.dotted(expression.field(Field::function)))) return true;
    for (Node argument : expression.field(Field::arguments).named_children())
      if (is_jit(shapes_.dotted(argument))) return true;  // partial(jit, ...)
    return false;
  }

  std::string_view refusal_or(std::string_view refusal) const {
    return refusal_.empty() ? refusal : refusal_;
  }

  Site& add(Form form, Node whole, Node operand, std::string callee) {
    Site site;
    site.package = source_.package;
    site.file = source_.name;
    site.form = form;
    site.callee = std::move(callee);
    site.start = expression_start(whole);
    site.end = whole.end();
    site.operand_start = expression_start(operand);
    site.operand_end = operand.end();
    site.line = source_.line_of(site.start);
    site.column = source_.column_of(site.start);
    site.end_line = source_.line_of(site.end);
    site.end_column = source_.column_of(site.end);
    site.scope = scope_.empty() ? "<module>" : scope_;
    site.targets = targets_;
    site.order = static_cast<uint32_t>(sites_.size());
    site.refusal = refusal_;
    sites_.push_back(std::move(site));
    return sites_.back();
  }

  void refuse(Site& site, std::string_view why) {
    if (site.refusal.empty()) site.refusal = why;
  }

  void visit_children(Node node) {
    for (Node child : node.named_children()) visit(child);
  }

  void visit(Node node) {
    switch (node.kind()) {
      case Kind::identifier:
      case Kind::comment:
      case Kind::type:
      case Kind::type_parameter:
      case Kind::type_alias_statement:
      case Kind::case_pattern:
        return;  // names, annotations and patterns apply no operator
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
        Restore inside(refusal_, refusal_or("inside an f-string"));
        return visit_children(node);
      }
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

  // --- scopes

  std::string nested(const std::string& name) const {
    return scope_.empty() ? name : scope_ + "." + name;
  }

  void visit_function(Node node) {
    std::string name = shapes_.text(node.field(Field::name));
    bool compiled = compiled_.contains(name);
    Restore jit(refusal_, refusal_or(compiled ? "in a jit function" : ""));
    visit(node.field(Field::parameters));
    Restore scope(scope_, nested(name));
    visit(node.field(Field::body));
  }

  void visit_class(Node node) {
    if (Node bases = node.field(Field::superclasses)) {
      Restore inside(in_bases_, true);
      visit(bases);
    }
    Restore scope(scope_, nested(shapes_.text(node.field(Field::name))));
    visit(node.field(Field::body));
  }

  void visit_decorated(Node node) {
    bool jit = false;
    for (Node child : node.named_children()) {
      if (child.kind() == Kind::decorator) {
        Restore inside(refusal_, refusal_or("decorator"));
        jit = jit || is_jit_decorator(child);
        visit_children(child);
      }
    }
    Restore inside(refusal_, refusal_or(jit ? "in a jit function" : ""));
    visit(node.field(Field::definition));
  }

  void visit_parameters(Node node) {
    for (Node child : node.named_children())
      if (child.kind() == Kind::default_parameter || child.kind() == Kind::typed_default_parameter)
        visit(child.field(Field::value));
  }

  void visit_lambda(Node node) {
    if (Node parameters = node.field(Field::parameters)) visit(parameters);
    Restore scope(scope_, nested("<lambda>"));
    visit(node.field(Field::body));
  }

  // --- assignments and loops

  void visit_assignment(Node node) {
    std::vector<Node> lefts;
    std::vector<std::string> targets;
    Node right = node, left;
    bool bare = false;  // `x: int`
    while (right && right.kind() == Kind::assignment) {
      left = right.field(Field::left);
      lefts.push_back(left);
      shapes_.add_targets(left, targets);
      bare = !right.field(Field::right);
      right = right.field(Field::right);
    }
    Restore statement(targets_, std::move(targets));
    if (right) visit(right);
    for (Node each : lefts) bare ? visit_unstored(each) : visit_target(each);
  }

  // What is assigned to: the outermost subscript is a write, all below it is read.
  void visit_target(Node node) {
    switch (node.kind()) {
      case Kind::subscript:
        return visit_subscript(node, "[]=");
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

  // `del x[i]` and `x[i]: int` neither read nor write x[i].
  void visit_unstored(Node node) {
    switch (node.kind()) {
      case Kind::subscript:
        return visit_children(node);
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

  void visit_augmented(Node node) {
    Node left = node.field(Field::left), right = node.field(Field::right), operand = left;
    std::vector<std::string> targets;
    shapes_.add_targets(left, targets);
    Restore statement(targets_, std::move(targets));
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

  void visit_for(Node node) {
    visit_loop(node);
    visit(node.field(Field::body));
    if (Node alternative = node.field(Field::alternative)) visit(alternative);
  }

  // `for LEFT in RIGHT`, a statement's or a comprehension's.
  void visit_loop(Node node) {
    std::vector<Node> rights = node.fields(Field::right);
    Node left = node.field(Field::left);
    {
      std::vector<std::string> targets;
      shapes_.add_targets(left, targets);
      Restore loop(targets_, std::move(targets));
      std::vector<Node> iterated;
      for (Node right : rights)
        if (right.named()) iterated.push_back(right);
      for (Node right : iterated) visit(right);
      if (!iterated.empty()) {
        Site& site = add_iterate(iterated[0], iterated[0]);
        if (iterated.size() > 1) refuse(site, "a tuple without parentheses");
        bool async = std::string_view(node.children().front().type()) == "async";
        if (async) refuse(site, "async for");
      }
    }
    visit_target(left);
  }

  Site& add_iterate(Node whole, Node iterated) {
    Site& site = add(Form::iterate, whole, iterated, "iter");
    site.receiver = shapes_.shortened(iterated);
    site.arguments = {shapes_.argument(iterated)};
    if (iterated.kind() == Kind::expression_list) refuse(site, "a tuple without parentheses");
    return site;
  }

  void visit_comprehension(Node node) {
    for (Node child : node.named_children())
      if (child.kind() == Kind::for_in_clause || child.kind() == Kind::if_clause) visit(child);
    visit(node.field(Field::body));
  }

  void visit_conditional(Node node) {
    std::vector<Node> parts = node.named_children();  // value, condition, alternative
    if (parts.size() != 3) return visit_children(node);
    visit(parts[1]);
    visit(parts[0]);
    visit(parts[2]);
  }

  // --- operators

  void visit_call(Node node) {
    Node function = node.field(Field::function), arguments = node.field(Field::arguments);
    visit(function);
    visit(arguments);
    Site& site = add(Form::call, node, function, shapes_.callee(function));
    if (Node bare = without_parentheses(function); bare.kind() == Kind::attribute)
      site.receiver = shapes_.shortened(bare.field(Field::object));
    site.arguments = shapes_.arguments(arguments);
    if (depends_on_frame(shapes_.dotted(without_parentheses(function))))
      refuse(site, "depends on its frame");
  }

  // "&" or "^" for such a node, else "".
  std::string and_or_xor(Node node) const {
    if (node.kind() != Kind::binary_operator) return "";
    std::string op = shapes_.text(node.field(Field::operator_));
    return op == "&" || op == "^" ? op : "";
  }

  // The grammar lets `^` bind tighter than `&`; Python the other way round.
  bool mixes_and_xor(Node node, const std::string& parent) const {
    std::string op = and_or_xor(node);
    if (op.empty()) return false;
    return (!parent.empty() && op != parent) || mixes_and_xor(node.field(Field::left), op) ||
           mixes_and_xor(node.field(Field::right), op);
  }

  void visit_binary(Node node, std::string_view why) {
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

  void visit_unary(Node node) {
    Node argument = node.field(Field::argument);
    visit(argument);
    std::string op = shapes_.text(node.field(Field::operator_));
    bool literal = argument.kind() == Kind::integer || argument.kind() == Kind::float_;
    if (op == "+" || literal) return;
    add(Form::unary, node, argument, op).receiver = shapes_.shortened(argument);
  }

  void visit_comparison(Node node) {
    visit_children(node);
    std::vector<Node> operators = node.fields(Field::operators), operands = node.named_children();
    if (operators.empty() || operands.empty()) return;
    std::string op = operators[0].type();
    if (operators.size() == 1 && (op.find("in") != op.npos || op.find("is") != op.npos)) return;
    Site& site = add(Form::compare, node, operands[0], op);
    site.receiver = shapes_.shortened(operands[0]);
    site.arguments = {shapes_.argument(operands.back())};
    if (operators.size() > 1) refuse(site, "chained comparison");
  }

  void visit_subscript(Node node, const char* callee) {
    Node value = node.field(Field::value);
    visit_children(node);
    Site& site = add(Form::subscript, node, value, callee);
    site.receiver = shapes_.shortened(value);
    for (Node index : node.fields(Field::subscript))
      if (index.named()) site.arguments.push_back(shapes_.argument(index));
    if (in_bases_) refuse(site, "in a class's bases");
  }

  // The grammar reads `await a ** b` as `await (a ** b)`; Python as `(await a) ** b`.
  void visit_await(Node node) {
    for (Node child : node.named_children())
      child.kind() == Kind::binary_operator ? visit_binary(child, "after await") : visit(child);
  }

  void visit_yield(Node node) {
    visit_children(node);
    std::vector<Node> children = node.children();
    if (children.size() < 3 || std::string_view(children[1].type()) != "from") return;
    add_iterate(node, node.named_children().front());
  }

  const SourceFile& source_;
  Shapes shapes_;
  const Tree& tree_;
  std::vector<Site> sites_;
  std::set<std::string> compiled_;  // functions handed to a source-reading compiler
  std::string scope_;
  std::vector<std::string> targets_;  // of the statement being visited
  std::string_view refusal_;          // why nothing here can be wrapped
  bool in_bases_ = false;
};

}  // namespace

std::vector<Site> parse_sites(const SourceFile& source, Diagnostics& diags) {
  if (source.text.find(kImportMark) != std::string::npos) {
    std::optional<SourceFile> plain = without_probes(source, diags);
    if (!plain) return {};
    if (plain->text != source.text) return parse_sites(*plain, diags);
  }
  std::optional<Tree> tree = parse_tree(source, diags);
  if (!tree) return {};
  return Walker(source, *tree).run();
}

std::vector<Site> parse_sites(const SourceSet& sources, Diagnostics& diags) {
  std::vector<Site> all;
  for (const SourceFile& file : sources.files) {
    std::vector<Site> sites = parse_sites(file, diags);
    all.insert(all.end(), std::make_move_iterator(sites.begin()),
               std::make_move_iterator(sites.end()));
  }
  return all;
}

}  // namespace opguard
