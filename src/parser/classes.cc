// One walk; `owner` goes down with it and says whose method a function would be.
//
//   class A:                 owner A
//       if flag:             owner A: a block is no scope
//           def f(self):     method of A; below it the owner is nobody
//               def g(x):    no method
//
// A function of a class that is decorated as a static method has an owner and no receiver.
// Counterexample: a decorator under another name, `@static`. It is told by its text alone, so the
// first parameter counts as an instance.
//
// The cost: a parse and a walk. function_around() looks at every function of the file.
#include "parser/classes.h"

#include <string_view>
#include <utility>

#include "parser/probe_text.h"
#include "parser/probes.h"
#include "parser/tree.h"
#include "support/diagnostics.h"

namespace opguard {
namespace {

class ClassReader {
 public:
  explicit ClassReader(std::string_view text) : text_(text) {}

  Classes run(Node root) {
    visit(root, std::nullopt);
    return std::move(found_);
  }

 private:
  std::string_view text(Node node) const {
    return text_.substr(node.start(), node.end() - node.start());
  }

  // owner: of a function that stands here. A block under `if` or `with` is still its class's.
  void visit(Node node, std::optional<uint32_t> owner) {
    if (node.kind() == Kind::class_definition) {
      owner = static_cast<uint32_t>(found_.classes.size());
      add_class(node);
    } else if (node.kind() == Kind::function_definition) {
      add_function(node, owner);
      owner.reset();
    }
    node.each_named_child([&](Node child) { visit(child, owner); });
  }

  void add_class(Node node) {
    Class& found = found_.classes.emplace_back();
    found.name = text(node.field(Field::name));
    node.field(Field::superclasses).each_named_child([&](Node base) {
      found.bases.push_back(expression_line(text(base)));
    });
  }

  void add_function(Node node, std::optional<uint32_t> owner) {
    FunctionBody& found = found_.functions.emplace_back();
    found.start = node.start();
    found.end = node.end();
    found.owner = owner;
    if (owner && !is_static(node))
      found.receiver = first_name(node.field(Field::parameters).first_named_child());
  }

  bool is_static(Node function) const {
    const Node outer = function.parent();
    if (outer.kind() != Kind::decorated_definition) return false;
    bool found = false;
    outer.each_named_child([&](Node child) {
      if (child.kind() == Kind::decorator)
        found = found || text(child.first_named_child()) == "staticmethod";
    });
    return found;
  }

  // Of x, x: T, x=1, x: T=1; none of *x and of a lone star.
  std::string_view first_name(Node parameter) const {
    if (!parameter) return {};
    if (parameter.kind() == Kind::identifier) return text(parameter);
    if (const Node name = parameter.field(Field::name)) return text(name);
    const Node inner = parameter.first_named_child();
    return parameter.field(Field::type) && inner.kind() == Kind::identifier ? text(inner)
                                                                            : std::string_view();
  }

  std::string_view text_;
  Classes found_;
};

}  // namespace

Classes read_classes(const SourceFile& source) {
  Diagnostics unused;  // parse_sites() has said what is wrong with it
  if (source.text.find(kImportMark) != std::string::npos) {
    const std::optional<SourceFile> plain = without_probes(source, unused);
    if (!plain) return {};
    if (plain->text != source.text) return read_classes(*plain);
  }
  const std::optional<Tree> tree = parse_tree(source, unused);
  return tree ? ClassReader(source.text).run(tree->root()) : Classes();
}

const FunctionBody* function_around(const Classes& classes, uint32_t offset) {
  const FunctionBody* innermost = nullptr;
  // Outer ones come first, so the last that holds the byte is the innermost.
  for (const FunctionBody& function : classes.functions)
    if (function.start <= offset && offset < function.end) innermost = &function;
  return innermost;
}

}  // namespace opguard
