// parser/walker.h: from a syntax tree to its operator sites, in the order CPython evaluates them.
//
//   y = f(a + b) * c       `a + b`: operand a; the call: operand f; `*`: operand f(a + b)
//
// A site is an operator and the operand that a probe would wrap. What encloses it becomes its scope
// and block, what stands beside it its arguments. The scopes and what a site is made of are in
// walker.cc, the forms in walker_statements.cc and walker_expressions.cc.
//
// Counterexample: `not(x)` has no blank before its operand. The probe would grow into the word, so
// it goes inside the parentheses (separate).
//
// The cost: one walk over the tree. Of a large file only the scopes that are wanted are made into
// sites.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parser/outline.h"
#include "parser/quotes.h"
#include "parser/shape.h"
#include "parser/site.h"
#include "parser/tree.h"
#include "support/source.h"

namespace opguard {

// A place's value until the end of a block.
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

// A site is added behind those of its operands, which is the order in which CPython evaluates them.
// So `order` is the number of sites before.
class Walker {
 public:
  // wanted: the scopes whose sites are made, whole; nullptr: all.
  Walker(const SourceFile& source, const Tree& tree, const ScopeNames* wanted = nullptr)
      : source_(source), shapes_(source.text), tree_(tree), wanted_(wanted) {}

  std::vector<Site> run();

 private:
  // f in torch.jit.script(f): as good as a decorator.
  void find_compiled_functions(Node node);
  bool is_jit_decorator(Node decorator);
  std::string_view refusal_or(std::string_view refusal) const;

  struct Span {
    uint32_t start, end;
  };
  // From the expression itself, without a star that the grammar has given to it.
  static Span span(Node node) { return {expression_start(node), node.end()}; }

  // Nothing may grow into the word before it: `not(x)` takes the probe inside its parentheses.
  Span separate(Node operand, std::string_view& why);
  Site& add(Form form, Node whole, Node operand, std::string callee);
  Site& add(Form form, Span whole, Node operand, std::string callee);
  Site& add(Form form, Span whole, Span operand, std::string callee);
  // The first reason stays. That of the surroundings is there from the beginning.
  void refuse(Site& site, std::string_view why);
  void visit_children(Node node);

  // The block of a compound statement; bodies of functions and classes are scopes instead.
  void visit_block(Node block);

  // The parts of a display or an argument list; `*x` is an iteration of x.
  void visit_items(Node node);
  void visit_item(Node child);

  // The expression in parentheses, as CPython's own positions have it; not what needs them.
  static Node inside(Node node);
  void visit(Node node);

  // --- scopes

  // Whether scope_ or a scope inside it is wanted.
  bool enters() const;
  std::string nested(const std::string& name) const;
  void visit_function(Node node);
  void visit_class(Node node);
  void visit_decorated(Node node);
  void visit_parameters(Node node);
  void visit_lambda(Node node);

  // --- assignments and loops

  void visit_assignment(Node node);

  // `a, b = t`. A display on the right is not iterated.
  void visit_unpacking(Node assignment, const std::vector<Node>& lefts, Node right);

  // What is assigned to: the outermost subscript is a write, all below it is read.
  void visit_target(Node node);

  // `del x[i]` and `x[i]: int` neither read nor write x[i].
  void visit_unstored(Node node);
  void visit_augmented(Node node);
  void visit_for(Node node);

  // `for LEFT in RIGHT`, a statement's or a comprehension's.
  void visit_loop(Node node);
  Site& add_iterate(Node whole, Node iterated);
  void visit_comprehension(Node node);
  void visit_conditional(Node node);

  // --- truth

  // if, elif, while.
  void visit_tested(Node node);
  void visit_assert(Node node);
  void visit_pair(Node node);

  // Literals are tested by the compiler, these comparisons give a bool.
  bool never_computes(Node node) const;

  // What CPython compiles to jumps: operands of `and`, `or`, `not` are tested one by one. `whole`:
  // the statement up to the test's end, or the expression the test belongs to.
  void visit_test(Node node, Span whole);
  void add_truth(Span whole, Node test, bool chained);

  // `not x` where its value is used.
  void visit_not(Node node);

  // --- with, f-strings, attributes

  void visit_with(Node node);

  // `{expression!r:spec}` of an f-string.
  void visit_interpolation(Node node);
  void visit_attribute(Node node);

  // Reading the attribute that is called is part of the call.
  void visit_callee(Node function);

  // --- operators

  void visit_call(Node node);

  // "&" or "^" for such a node, else "".
  std::string and_or_xor(Node node) const;

  // The grammar lets `^` bind tighter than `&`; Python the other way round.
  bool mixes_and_xor(Node node, const std::string& parent) const;
  void visit_binary(Node node, std::string_view why);
  void visit_unary(Node node);

  // `in` and `is` compare nothing.
  static bool compares(Node op);
  void visit_comparison(Node node);
  void visit_contains(Node node, Node op);
  void visit_subscript(Node node, const char* callee);

  // The grammar reads `await a ** b` as `await (a ** b)`; Python as `(await a) ** b`.
  void visit_await(Node node);
  void visit_yield(Node node);

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

}  // namespace opguard
