// Parameters and calls are read from the trees; a call is held against both programs' parameters.
//
//   own   def pairs(self, size, x, y)       other   def pairs(self, x, y)
//   call  self.pairs(n, x, y)               needs(): its first argument would be `x` there
//
// Counterexample: a call with *args. What it hands over by position is not known, so only its
// keywords are asked.
#include "suspects/signatures.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace opguard {
namespace {

// Of `x: int = 1` the x.
std::string_view first_identifier(const CodeFile& file, Node node) {
  while (node && node.kind() != Kind::identifier) node = node.first_named_child();
  return node ? file.text(node.index()) : std::string_view();
}

void read_parameters(const CodeFile& file, const Node& parameters, bool method,
                     Signature& signature) {
  bool keyword_only = false;
  bool first = true;
  for (const Node& parameter : parameters.children()) {
    if (!parameter.named()) continue;
    const std::string_view type = parameter.type();
    const std::string_view text = file.text(parameter.index());
    if (type == "positional_separator") continue;
    if (text.starts_with("**")) {
      signature.keywords = true;
      continue;
    }
    if (text.starts_with("*")) {
      // A bare `*` takes nothing, and what follows are keywords all the same.
      signature.rest |= type != "keyword_separator";
      keyword_only = true;
      continue;
    }
    const std::string name(first_identifier(file, parameter));
    if (name.empty() || parameter.kind() == Kind::comment) continue;
    // Only the first parameter of a method is `self`; of a static method it is none.
    if (std::exchange(first, false) && method && is_self(name)) continue;
    const bool given = parameter.kind() == Kind::default_parameter ||
                       parameter.kind() == Kind::typed_default_parameter;
    if (keyword_only) {
      signature.keyword_only.push_back(name);
      continue;
    }
    signature.positional.push_back(name);
    signature.required += !given;
  }
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::vector<Signature> signatures_of(const CodeFile& file) {
  std::vector<Signature> found;
  for (uint32_t s = 1; s < file.scopes.size(); ++s) {
    const Scope& scope = file.scopes[s];
    if (scope.kind != Scope::Kind::function) continue;
    const Scope& around = file.scopes[scope.parent];
    const bool method = around.kind == Scope::Kind::klass;
    Signature signature;
    signature.path = file.path_of(s);
    signature.name = method && scope.name == "__init__" ? around.name : scope.name;
    const Node parameters = file.node(scope.item).field(Field::parameters);
    if (!parameters) continue;
    read_parameters(file, parameters, method, signature);
    signature.lines = file.lines(parameters.index());
    found.push_back(std::move(signature));
  }
  return found;
}

std::vector<CallShape> calls_of(const CodeFile& file) {
  std::vector<CallShape> found;
  if (!file.tree) return found;
  const std::vector<TreeItem>& items = file.tree->items();
  for (uint32_t i = 0; i < items.size(); ++i) {
    if (items[i].kind != Kind::call) continue;
    const Node node = file.node(i);
    CallShape call;
    call.name = last_name(file, node.field(Field::function));
    // `super().__init__(8)` calls the constructor of the first base, which is known by its class's
    // name.
    if (call.name == "__init__") {
      const uint32_t scope = file.class_around(file.scope_of[i]);
      if (file.scopes[scope].bases.empty()) continue;
      call.name = file.scopes[scope].bases.front();
    }
    const Node arguments = node.field(Field::arguments);
    if (call.name.empty() || !arguments) continue;
    arguments.each_named_child([&](const Node& argument) {
      if (argument.kind() == Kind::keyword_argument)
        call.keywords.emplace_back(file.text(argument.field(Field::name).index()));
      else if (argument.kind() == Kind::list_splat || argument.kind() == Kind::dictionary_splat)
        call.open = true;
      else
        ++call.positional;
    });
    call.lines = file.lines(i);
    found.push_back(std::move(call));
  }
  return found;
}

bool needs(const CallShape& call, const Signature& own, const Signature& other) {
  for (const std::string& name : call.keywords)
    if ((has(own.positional, name) || has(own.keyword_only, name) || own.keywords) &&
        !has(other.positional, name) && !has(other.keyword_only, name) && !other.keywords)
      return true;
  if (call.open) return false;
  if (call.positional > own.positional.size() && !own.rest) return false;  // another function
  for (size_t i = 0; i < std::min(call.positional, own.positional.size()); ++i)
    // By position it would be handed to another parameter, or to none.
    if (i >= other.positional.size() ? !other.rest : other.positional[i] != own.positional[i])
      return true;
  for (size_t i = call.positional; i < other.required; ++i)
    if (!has(call.keywords, other.positional[i])) return true;
  return false;
}

}  // namespace opguard
