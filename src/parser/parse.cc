#include "parser/parse.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "parser/import_line.h"
#include "parser/probe_text.h"
#include "parser/quotes.h"
#include "parser/shape.h"
#include "parser/tree.h"
#include "support/parallel.h"

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
  // wanted: the scopes whose sites are made, whole; nullptr: all.
  Walker(const SourceFile& source, const Tree& tree, const ScopeNames* wanted = nullptr)
      : source_(source), shapes_(source.text), tree_(tree), wanted_(wanted) {}

  std::vector<Site> run() {
    if (source_.text.find("jit") != std::string::npos ||
        source_.text.find("script") != std::string::npos)
      find_compiled_functions(tree_.root());
    visit(tree_.root());
    uint32_t import_offset = find_import_place(source_, tree_).offset;
    for (Site& site : sites_)
      if (site.start < import_offset && site.refusal.empty())
        site.refusal = "before the import line";
    if (wanted_) std::erase_if(sites_, [&](const Site& s) { return !wanted_->contains(s.scope); });
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
    node.each_named_child([&](Node child) { find_compiled_functions(child); });
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

  struct Span {
    uint32_t start, end;
  };
  static Span span(Node node) { return {expression_start(node), node.end()}; }

  // Nothing may grow into the word before it: `not(x)` takes the probe inside its parentheses.
  Span separate(Node operand, std::string_view& why) {
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

  Site& add(Form form, Node whole, Node operand, std::string callee) {
    return add(form, span(whole), operand, std::move(callee));
  }

  Site& add(Form form, Span whole, Node operand, std::string callee) {
    std::string_view why;
    Span inner = separate(operand, why);
    Site& site = add(form, whole, inner, std::move(callee));
    refuse(site, why);
    return site;
  }

  Site& add(Form form, Span whole, Span operand, std::string callee) {
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

  void refuse(Site& site, std::string_view why) {
    if (site.refusal.empty()) site.refusal = why;
  }

  void visit_children(Node node) {
    node.each_named_child([&](Node child) { visit(child); });
  }

  // The block of a compound statement; bodies of functions and classes are scopes instead.
  void visit_block(Node block) {
    Node statement = block.parent();
    if (statement.kind() == Kind::function_definition || statement.kind() == Kind::class_definition)
      return visit_children(block);
    Restore inside(block_,
                   (block_.empty() ? "" : block_ + "; ") + shapes_.header(statement, block));
    visit_children(block);
  }

  // The parts of a display or an argument list; `*x` is an iteration of x.
  void visit_items(Node node) {
    for (Node child : node.named_children()) visit_item(child);
  }

  void visit_item(Node child) {
    visit(child);
    bool star = child.kind() == Kind::list_splat;
    uint32_t start = expression_start(child);
    if (!star && start == child.start()) return;
    Node operand = star && !child.named_children().empty() ? child.named_children()[0] : child;
    Site& site =
        add(Form::iterate, Span{child.start(), child.end()}, Span{start, child.end()}, kUnpack);
    site.receiver = shapes_.shortened(operand);
    site.arguments = {shapes_.argument(operand)};
  }

  // The expression in parentheses, as CPython's own positions have it; not what needs them.
  static Node inside(Node node) {
    Node inner = without_parentheses(node);
    bool needs = inner.kind() == Kind::yield;
    return needs ? node : inner;
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

  // --- scopes

  // Whether scope_ or a scope inside it is wanted.
  bool enters() const {
    if (!wanted_) return true;
    auto next = wanted_->lower_bound(scope_);
    if (next != wanted_->end() && *next == scope_) return true;
    next = wanted_->lower_bound(scope_ + ".");
    return next != wanted_->end() && next->starts_with(scope_ + ".");
  }

  std::string nested(const std::string& name) const {
    return scope_.empty() ? name : scope_ + "." + name;
  }

  void visit_function(Node node) {
    std::string name = shapes_.text(node.field(Field::name));
    bool compiled = compiled_.contains(name);
    Restore jit(refusal_, refusal_or(compiled ? "in a jit function" : ""));
    visit(node.field(Field::parameters));
    Restore scope(scope_, nested(name));
    Restore block(block_, std::string());
    if (enters()) visit(node.field(Field::body));
  }

  void visit_class(Node node) {
    if (Node bases = node.field(Field::superclasses)) {
      Restore inside(in_bases_, true);
      visit(bases);
    }
    Restore scope(scope_, nested(shapes_.text(node.field(Field::name))));
    Restore block(block_, std::string());
    if (enters()) visit(node.field(Field::body));
  }

  void visit_decorated(Node node) {
    bool jit = false;
    std::vector<Node> decorators;
    for (Node child : node.named_children())
      if (child.kind() == Kind::decorator && !child.named_children().empty()) {
        jit = jit || is_jit_decorator(child);
        decorators.push_back(child.named_children()[0]);
      }
    // These compilers look for themselves among the decorators.
    Restore inside(refusal_, refusal_or(jit ? "in a jit function" : ""));
    for (Node decorator : decorators) visit_callee(decorator);
    visit(node.field(Field::definition));
    // The innermost is applied first.
    for (size_t i = decorators.size(); i-- > 0;) {
      Site& site =
          add(Form::call, decorators[i], decorators[i], "@" + shapes_.callee(decorators[i]));
      site.arguments = {"definition"};
    }
  }

  void visit_parameters(Node node) {
    for (Node child : node.named_children())
      if (child.kind() == Kind::default_parameter || child.kind() == Kind::typed_default_parameter)
        visit(child.field(Field::value));
  }

  void visit_lambda(Node node) {
    if (Node parameters = node.field(Field::parameters)) visit(parameters);
    Restore scope(scope_, nested("<lambda>"));
    Restore block(block_, std::string());
    if (enters()) visit(node.field(Field::body));
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
    if (right) {
      visit(right);
      visit_unpacking(node, lefts, right);
    }
    for (Node each : lefts) bare ? visit_unstored(each) : visit_target(each);
  }

  // `a, b = t`. A display on the right is not iterated.
  void visit_unpacking(Node assignment, const std::vector<Node>& lefts, Node right) {
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
    if (!std::all_of(lefts.begin(), lefts.end(), pattern)) refuse(site, "its value is kept, too");
    if (right.kind() == Kind::yield) refuse(site, "a yield without parentheses");
  }

  // What is assigned to: the outermost subscript is a write, all below it is read.
  void visit_target(Node node) {
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

  // `del x[i]` and `x[i]: int` neither read nor write x[i].
  void visit_unstored(Node node) {
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
    for (Node child : node.named_children()) {
      if (child.kind() == Kind::for_in_clause) visit(child);
      if (child.kind() == Kind::if_clause) visit_test(child.named_children()[0], span(node));
    }
    visit(node.field(Field::body));
  }

  void visit_conditional(Node node) {
    std::vector<Node> parts = node.named_children();  // value, condition, alternative
    if (parts.size() != 3) return visit_children(node);
    visit_test(parts[1], span(node));
    visit(parts[0]);
    visit(parts[2]);
  }

  // --- truth

  // if, elif, while.
  void visit_tested(Node node) {
    Node condition = node.field(Field::condition);
    visit_test(condition, {node.start(), condition.end()});
    for (Node child : node.named_children())
      if (child.start() != condition.start()) visit(child);
  }

  void visit_assert(Node node) {
    std::vector<Node> parts = node.named_children();
    for (size_t i = 0; i < parts.size(); ++i)
      i == 0 ? visit_test(parts[0], {node.start(), parts[0].end()}) : visit(parts[i]);
  }

  // Literals are tested by the compiler, these comparisons give a bool.
  bool never_computes(Node node) const {
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

  // What CPython compiles to jumps: operands of `and`, `or`, `not` are tested one by one. `whole`:
  // the statement up to the test's end, or the expression the test belongs to.
  void visit_test(Node node, Span whole) {
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

  void add_truth(Span whole, Node test, bool chained) {
    if (never_computes(test)) return;
    Site& site = add(Form::truth, whole, test, "bool");
    site.receiver = shapes_.shortened(test);
    site.arguments = {shapes_.argument(test)};
    // Its first comparison would be tested twice.
    if (chained) refuse(site, "chained comparison");
  }

  // `not x` where its value is used.
  void visit_not(Node node) {
    Node argument = inside(node.field(Field::argument));
    visit(argument);
    add_truth(span(node), argument, false);
  }

  // --- with, f-strings, attributes

  void visit_with(Node node) {
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

  // `{expression!r:spec}` of an f-string.
  void visit_interpolation(Node node) {
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
    if (value.kind() == Kind::string || value.kind() == Kind::concatenated_string) return;
    Site& site = add(Form::format, span(node), inside(value), "format");
    site.receiver = shapes_.shortened(value);
    site.arguments = {shapes_.argument(value)};
    if (value.kind() == Kind::expression_list || value.kind() == Kind::pattern_list)
      refuse(site, "a tuple without parentheses");
    if (value.kind() == Kind::yield) refuse(site, "a yield without parentheses");
  }

  void visit_attribute(Node node) {
    Node object = node.field(Field::object);
    visit(object);
    std::string name = shapes_.text(node.field(Field::attribute));
    Site& site = add(Form::read, node, object, "." + name);
    site.receiver = shapes_.shortened(object);
    if (!augment_operator(name).empty()) refuse(site, "a probe has an attribute of this name");
    if (in_bases_) refuse(site, "in a class's bases");
  }

  // Reading the attribute that is called is part of the call.
  void visit_callee(Node function) {
    Node bare = without_parentheses(function);
    if (bare.kind() == Kind::list_splat && !bare.named_children().empty())
      return visit_callee(bare.named_children()[0]);
    bare.kind() == Kind::attribute ? visit(bare.field(Field::object)) : visit(function);
  }

  // --- operators

  void visit_call(Node node) {
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

  // `in` and `is` compare nothing.
  static bool compares(Node op) {
    std::string_view text = op.type();
    return text.find('i') == text.npos;
  }

  void visit_comparison(Node node) {
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

  void visit_contains(Node node, Node op) {
    std::vector<Node> operands = node.named_children();
    bool text = operands[1].kind() == Kind::string;
    if (std::string_view(op.type()).find("in") == std::string_view::npos || text) return;
    Site& site = add(Form::contains, node, operands[1], "in");
    site.receiver = shapes_.shortened(operands[1]);
    site.arguments = {shapes_.argument(operands[0])};
  }

  void visit_subscript(Node node, const char* callee) {
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

  // The grammar reads `await a ** b` as `await (a ** b)`; Python as `(await a) ** b`.
  void visit_await(Node node) {
    for (Node child : node.named_children()) {
      bool misread = child.kind() == Kind::binary_operator;
      misread ? visit_binary(child, "after await") : visit(child);
      Site& site = add(Form::await, node, child, "await");
      site.receiver = shapes_.shortened(child);
      site.arguments = {shapes_.argument(child)};
      if (misread) refuse(site, "after await");
    }
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
  const ScopeNames* wanted_;
  std::vector<Site> sites_;
  std::set<std::string> compiled_;  // functions handed to a source-reading compiler
  std::string scope_;
  std::string block_;                 // Site::block of what is visited
  std::vector<std::string> targets_;  // of the statement being visited
  std::string_view refusal_;          // why nothing here can be wrapped
  std::vector<StringQuote> strings_;  // f-strings around what is visited
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

std::vector<Site> parse_sites(const SourceFile& source, const Words& words,
                              const ChooseScopes& choose, Diagnostics& diags) {
  if (source.text.find(kImportMark) != std::string::npos) {
    std::optional<SourceFile> plain = without_probes(source, diags);
    if (!plain) return {};
    if (plain->text != source.text) return parse_sites(*plain, words, choose, diags);
  }
  std::optional<Tree> tree = parse_tree(source, diags);
  if (!tree) return {};
  ScopeNames wanted = choose(outlines(*tree, source.text, words));
  if (wanted.empty()) return {};
  return Walker(source, *tree, &wanted).run();
}

void check_syntax(const SourceFile& source, Diagnostics& diags) {
  // Probes are taken out before a file is read.
  if (source.text.find(kImportMark) != std::string::npos)
    parse_sites(source, diags);
  else
    is_python(source, diags);
}

std::vector<Site> parse_sites(const SourceSet& sources, Diagnostics& diags) {
  std::vector<std::vector<Site>> sites(sources.files.size());
  std::vector<Diagnostics> found(sources.files.size());
  parallel_for(sites.size(), [&](size_t i) { sites[i] = parse_sites(sources.files[i], found[i]); });
  size_t count = 0;
  for (const std::vector<Site>& each : sites) count += each.size();
  std::vector<Site> all;
  all.reserve(count);
  for (size_t i = 0; i < sites.size(); ++i) {
    for (const Diagnostic& item : found[i].items()) diags.add(item);
    std::move(sites[i].begin(), sites[i].end(), std::back_inserter(all));
    sites[i] = {};
  }
  return all;
}

}  // namespace opguard
