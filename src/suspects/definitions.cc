// An index by name of every statement that may give a value, of all files; a use is looked up in
// it.
//
//   "lr"   name      lr = get_lr(it)              key    g['lr'] = lr
//          keyword   SGD(p, lr=base_lr)           told   add_argument("--lr", default=1e-3)
//
// Of a variable the scopes around it decide, innermost first. Of an attribute or a key nothing is
// known of its object, so all of that name count. Of `self` those of its class come first.
//
// Counterexample: types. `a.lr` and `b.lr` of two classes are one name here: too many ways rather
// than too few.
//
// The cost: one pass over the items of each file; memory for each assignment, argument, parameter
// and call of all sources.
#include "suspects/definitions.h"

#include <algorithm>

namespace opguard {
namespace {

// The name of a parameter, and its default where it has one.
std::pair<Node, Node> parameter_of(const Node& node) {
  if (node.kind() == Kind::identifier) return {node, {}};
  if (node.kind() == Kind::default_parameter || node.kind() == Kind::typed_default_parameter)
    return {node.field(Field::name), node.field(Field::value)};
  const Node first = node.first_named_child();
  return {first && first.kind() == Kind::identifier ? first : Node(), {}};
}

}  // namespace

Definitions::Definitions(const Code& code, const Calls& seen) : code_(code) {
  for (uint32_t file = 0; file < code.files().size(); ++file)
    if (code.files()[file].tree) read(file);
  read(seen);
}

void Definitions::read(const Calls& seen) {
  std::map<FunctionName, std::pair<uint32_t, uint32_t>> functions;
  for (uint32_t f = 0; f < code_.files().size(); ++f) {
    const CodeFile& file = code_.files()[f];
    for (uint32_t s = 1; s < file.scopes.size(); ++s)
      if (file.scopes[s].kind == Scope::Kind::function)
        functions[{file.source->package, file.source->name, file.path_of(s)}] = {f, s};
  }
  for (const FunctionCall& call : seen.all) {
    const auto function = functions.find(call.callee);
    const auto file = code_.find(call.at.path);
    if (function == functions.end() || !file || !code_.files()[*file].tree) continue;
    if (const auto item = code_.files()[*file].expression_at(call.at.line, call.at.column,
                                                             call.at.end_line, call.at.end_column);
        item && code_.files()[*file].node(*item).kind() == Kind::call)
      seen_[function->second].push_back({*file, *item});
  }
}

void Definitions::add(const std::string& name, Definition definition) {
  if (!name.empty()) by_name_[name].push_back(definition);
}

// Of `a, (b, self.c) = f()` each name, with all of `f()` as its value.
void Definitions::add_targets(uint32_t file, const Node& target, uint32_t item, uint32_t value) {
  const CodeFile& code = code_.files()[file];
  const uint32_t scope = code.scope_of[item];
  const bool in_class = code.scopes[scope].kind == Scope::Kind::klass;
  using Of = Definition::Kind;
  switch (target.kind()) {
    case Kind::identifier:
      return add(std::string(code.text(target.index())),
                 {in_class ? Of::field : Of::name, file, item, value, scope});
    case Kind::attribute:
      return add(std::string(last_name(code, target)), {Of::attribute, file, item, value, scope});
    case Kind::subscript:
      for (const Node& key : target.fields(Field::subscript))
        add(name_in_string(code, key), {Of::key, file, item, value, scope});
      return;
    default:
      target.each_named_child([&](const Node& part) { add_targets(file, part, item, value); });
  }
}

void Definitions::read(uint32_t file) {
  const CodeFile& code = code_.files()[file];
  const std::vector<TreeItem>& items = code.tree->items();
  using Of = Definition::Kind;
  for (uint32_t i = 0; i < items.size(); ++i) {
    if (!items[i].named || items[i].extra) continue;
    const Node node = code.node(i);
    const uint32_t scope = code.scope_of[i];
    auto index = [](const Node& part) { return part ? part.index() : 0; };
    switch (node.kind()) {
      case Kind::assignment:
      case Kind::augmented_assignment:
      case Kind::for_statement:
      case Kind::for_in_clause:
        // `x: int` gives no value. Of a loop only its header is shown.
        if (const Node right = node.field(Field::right))
          add_targets(file, node.field(Field::left), i, right.index());
        break;
      case Kind::named_expression:
        add_targets(file, node.field(Field::name), i, index(node.field(Field::value)));
        break;
      case Kind::as_pattern:
        if (const Node alias = node.field(Field::alias))
          add_targets(file, alias, i, index(node.first_named_child()));
        break;
      case Kind::keyword_argument:
        add(std::string(code.text(node.field(Field::name).index())),
            {Of::keyword, file, i, index(node.field(Field::value)), scope});
        break;
      case Kind::call: {
        const std::vector<Node> arguments = node.field(Field::arguments).named_children();
        calls_[std::string(last_name(code, node.field(Field::function)))].push_back({file, i});
        for (const Node& argument : arguments) {
          if (argument.kind() == Kind::identifier || argument.kind() == Kind::attribute)
            // A function that is handed over may be called with what stands beside it: partial(f,
            // eps=1e-5).
            calls_[std::string(last_name(code, argument))].push_back({file, i});
          // A name beside other values: a declaration of an option, a read with a default.
          if (arguments.size() > 1)
            add(name_in_string(code, argument),
                {Of::told, file, i, index(node.field(Field::arguments)), scope});
        }
        break;
      }
      case Kind::function_definition: {
        uint32_t own = 0;
        for (uint32_t s = 1; s < code.scopes.size() && own == 0; ++s)
          if (code.scopes[s].item == i) own = s;
        if (own == 0) break;
        add(code.scopes[own].name, {Of::function, file, i, 0, own});
        node.field(Field::parameters).each_named_child([&](const Node& parameter) {
          const auto [name, value] = parameter_of(parameter);
          if (name && !is_self(code.text(name.index())))
            add(std::string(code.text(name.index())),
                {Of::parameter, file, parameter.index(), index(value), own});
        });
        break;
      }
      default:
        if (std::string_view(node.type()) == "pair") {
          const Node key = node.first_named_child();
          const uint32_t value = index(node.field(Field::value));
          add(name_in_string(code, key), {Of::key, file, i, value, scope});
        }
    }
  }
}

// What callers give for a parameter, and what is bound to it where the function is handed over:
// partial(f, eps=1e-5).
void Definitions::add_arguments(const Definition& parameter, std::vector<Definition>& found) const {
  const CodeFile& code = code_.files()[parameter.file];
  const Scope& function = code.scopes[parameter.scope];
  const std::vector<Node> all = code.node(function.item).field(Field::parameters).named_children();
  const std::string name(code.text(parameter_of(code.node(parameter.item)).first.index()));
  size_t position = 0;
  bool method = false;
  for (size_t i = 0; i < all.size(); ++i) {
    const Node own = parameter_of(all[i]).first;
    if (i == 0 && own && is_self(code.text(own.index()))) method = true;
    if (all[i].index() == parameter.item) position = i;
  }
  // A caller does not give `self`.
  if (method && position > 0) --position;
  const Scope& above = code.scopes[function.parent];
  // A constructor is called by its class's name.
  const bool made = function.name == "__init__" && above.kind == Scope::Kind::klass;
  const std::string& callee = made ? above.name : function.name;
  std::vector<Call> calls;
  if (const auto named = calls_.find(callee); named != calls_.end()) calls = named->second;
  const auto seen = seen_.find({parameter.file, parameter.scope});
  if (seen != seen_.end())
    for (const Call& call : seen->second)
      if (std::find(calls.begin(), calls.end(), call) == calls.end()) calls.push_back(call);
  for (const Call& call : calls) {
    const CodeFile& caller = code_.files()[call.file];
    const Node node = caller.node(call.item);
    const bool called = last_name(caller, node.field(Field::function)) == callee ||
                        (seen != seen_.end() && std::find(seen->second.begin(), seen->second.end(),
                                                          call) != seen->second.end());
    size_t at = 0;
    for (const Node& argument : node.field(Field::arguments).named_children()) {
      Node value;
      if (argument.kind() == Kind::keyword_argument) {
        if (caller.text(argument.field(Field::name).index()) == name)
          value = argument.field(Field::value);
      } else if (at++ == position && called) {
        value = argument;
      }
      if (value)
        found.push_back({Definition::Kind::keyword, call.file, argument.index(), value.index(),
                         caller.scope_of[call.item]});
    }
  }
}

std::vector<Definition> Definitions::of(const NameUse& use) const {
  std::vector<Definition> found;
  const auto named = by_name_.find(use.name);
  if (named == by_name_.end()) return found;
  const std::vector<Definition>& all = named->second;
  using Of = Definition::Kind;
  const CodeFile& code = code_.files()[use.file];
  if (use.plain) {
    for (uint32_t scope = use.scope;; scope = code.scopes[scope].parent) {
      for (const Definition& d : all) {
        // A function stands in the scope around its own.
        const Scope& own = code_.files()[d.file].scopes[d.scope];
        const uint32_t stands = d.kind == Of::function ? own.parent : d.scope;
        if (d.file != use.file || stands != scope) continue;
        if (d.kind == Of::parameter) {
          add_arguments(d, found);
          if (d.value != 0) found.push_back(d);
        }
        if (d.kind == Of::name || d.kind == Of::function || d.kind == Of::field) found.push_back(d);
      }
      // An inner name hides those further out.
      if (!found.empty() || scope == 0) break;
    }
    if (!found.empty()) return found;
    // Imported: a name of another module.
    for (const Definition& d : all) {
      const Scope& scope = code_.files()[d.file].scopes[d.scope];
      if ((d.kind == Of::name && d.scope == 0) || (d.kind == Of::function && scope.parent == 0))
        found.push_back(d);
    }
    return found;
  }
  const uint32_t klass = use.own ? code.class_around(use.scope) : 0;
  if (klass != 0)
    for (const Definition& d : all)
      if (d.file == use.file && code.class_around(d.scope) == klass &&
          (d.kind == Of::attribute || d.kind == Of::field || d.kind == Of::function))
        found.push_back(d);
  if (!found.empty()) return found;
  for (const Definition& d : all) {
    const bool module = d.kind == Of::name && d.scope == 0;
    if (module || (d.kind != Of::name && (d.kind != Of::parameter || d.value != 0)))
      found.push_back(d);
  }
  return found;
}

std::vector<NameUse> Definitions::uses_in(uint32_t file, uint32_t item) const {
  const CodeFile& code = code_.files()[file];
  const std::vector<TreeItem>& items = code.tree->items();
  std::vector<NameUse> uses;
  for (uint32_t i = item; i < items[item].after; ++i) {
    const uint32_t scope = code.scope_of[i];
    if (items[i].kind == Kind::string) {
      // cfg["lr"], getattr(cfg, "lr")
      const std::string name = name_in_string(code, code.node(i));
      if (!name.empty()) uses.push_back({name, false, false, file, scope});
      continue;
    }
    if (items[i].kind != Kind::identifier) continue;
    const Node node = code.node(i), above = node.parent();
    std::string name(code.text(i));
    if (above && above.kind() == Kind::keyword_argument && above.field(Field::name) == node)
      continue;
    if (above && above.kind() == Kind::attribute && above.field(Field::attribute) == node) {
      const Node object = above.field(Field::object);
      const bool own = object.kind() == Kind::identifier && is_self(code.text(object.index()));
      uses.push_back({std::move(name), false, own, file, scope});
    } else if (!is_self(name)) {
      uses.push_back({std::move(name), true, false, file, scope});
    }
  }
  return uses;
}

std::vector<uint32_t> Definitions::decided_by(const Definition& definition) const {
  const CodeFile& code = code_.files()[definition.file];
  const std::vector<TreeItem>& items = code.tree->items();
  std::vector<uint32_t> found;
  if (definition.value != 0) found.push_back(definition.value);
  if (definition.kind == Definition::Kind::function) {
    const uint32_t from = code.scopes[definition.scope].item;
    for (uint32_t i = from; i < items[from].after; ++i)
      if (items[i].named && code.scope_of[i] == definition.scope &&
          (std::string_view(code.node(i).type()) == "return_statement" ||
           items[i].kind == Kind::yield))
        found.push_back(i);
    return found;
  }
  // The conditions around it, up to its function: whether that was called is another question.
  for (uint32_t at = definition.item; at != 0; at = items[at].parent) {
    if (items[at].kind == Kind::function_definition) break;
    if (items[at].kind == Kind::if_statement || items[at].kind == Kind::while_statement ||
        std::string_view(code.node(at).type()) == "elif_clause")
      if (const Node condition = code.node(at).field(Field::condition))
        found.push_back(condition.index());
  }
  return found;
}

}  // namespace opguard
