// One pass over the identifiers of a file: what stands above a name in the tree tells what it is.
//
//   self.up = nn.Linear(8, width)     up is an attribute, made; nn and width are variables
//                                     Linear is neither: its object is not `self`
//
// Occurrences lie in the order of the text, so those of some lines are found by halving.
//
// Counterexample: no scopes are told apart. `x` in two functions is one name here; who asks gives
// the lines of one.
#include "suspects/bindings.h"

#include <algorithm>

namespace opguard {
namespace {

// `x, y` on the left of `=`: the names lie deeper.
bool is_pattern(Kind kind) {
  return kind == Kind::pattern_list || kind == Kind::tuple_pattern || kind == Kind::list_pattern ||
         kind == Kind::list_splat_pattern;
}

// `x = 1`, `x, y = f()`, `for x in y`, `with f() as x`, `(x := 1)`; of `self.x = 1` the attribute.
bool is_made(Node name) {
  Node at = name;
  while (is_pattern(at.parent().kind())) at = at.parent();
  const Node above = at.parent();
  switch (above.kind()) {
    case Kind::assignment:
    case Kind::augmented_assignment:
    case Kind::for_statement:
    case Kind::for_in_clause:
      return above.field(Field::left) == at;
    case Kind::named_expression:
      return above.field(Field::name) == at;
    case Kind::as_pattern_target:
      return true;
    default:
      return false;
  }
}

// `self.hidden` and `f(hidden=x)` name no variable.
bool is_variable(Node name) {
  const Node above = name.parent();
  if (above.kind() == Kind::attribute) return above.field(Field::object) == name;
  if (above.kind() == Kind::keyword_argument) return above.field(Field::name) != name;
  return true;
}

// `x`, `x=1`, `x: int`, `*x` among a function's parameters.
bool is_parameter(Node name) {
  Node at = name;
  Node above = at.parent();
  if (above.kind() == Kind::default_parameter || above.kind() == Kind::typed_default_parameter) {
    if (above.field(Field::name) != at) return false;
    return above.parent().kind() == Kind::parameters;
  }
  while (above && above.kind() != Kind::parameters) {
    // A name in an annotation or in a default value is read, and no parameter.
    if (above.kind() == Kind::type || is_statement(above) || above.kind() == Kind::call)
      return false;
    at = above;
    above = above.parent();
  }
  return bool(above);
}

template <typename T>
std::span<const T> in_lines(const std::vector<T>& all, const SourceFile* source,
                            const LineSpan& lines) {
  if (lines.empty() || all.empty()) return {};
  const std::vector<uint32_t>& starts = source->line_starts;
  const size_t from = starts[lines.first - 1];
  const size_t to = lines.last < starts.size() ? starts[lines.last] : source->text.size();
  auto before = [](const T& x, size_t start) { return x.start < start; };
  const auto first = std::lower_bound(all.begin(), all.end(), from, before);
  return {first, std::lower_bound(first, all.end(), to, before)};
}

}  // namespace

Bindings::Bindings(const CodeFile& file) : source_(file.source) {
  if (!file.tree) return;
  const std::vector<TreeItem>& items = file.tree->items();
  for (uint32_t i = 0; i < items.size(); ++i) {
    if (items[i].kind != Kind::identifier) continue;
    const Node name = file.node(i), above = name.parent();
    const uint32_t scope = file.scope_of[i];
    const bool of_class = file.scopes[scope].kind == Scope::Kind::klass;
    const bool defined =
        (above.kind() == Kind::function_definition || above.kind() == Kind::class_definition) &&
        above.field(Field::name) == name;
    if (is_variable(name))
      variables_.push_back({items[i].start, items[i].end, file.text(i), !of_class && is_made(name),
                            !of_class && defined, is_parameter(name)});
    // What a class body makes is an attribute of it, and a method is.
    if (of_class && (defined || is_made(name)))
      members_.push_back(
          {items[i].start, file.scopes[file.class_around(scope)].name, file.text(i), true});
    if (above.kind() == Kind::attribute && above.field(Field::attribute) == name &&
        is_self(file.text(above.field(Field::object).index())))
      members_.push_back({items[i].start, file.scopes[file.class_around(scope)].name, file.text(i),
                          is_made(above)});
  }
  for (const Member& member : members_) of_class_[member.klass].emplace(member.name);
}

std::span<const Variable> Bindings::variables(const LineSpan& lines) const {
  return in_lines(variables_, source_, lines);
}

std::span<const Member> Bindings::members(const LineSpan& lines) const {
  return in_lines(members_, source_, lines);
}

bool Bindings::has_member(std::string_view klass, std::string_view name) const {
  const auto at = of_class_.find(klass);
  return at != of_class_.end() && at->second.contains(name);
}

}  // namespace opguard
