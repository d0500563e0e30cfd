// Counts words by scope, in the order in which the tree lies in memory.
//
//   class A:                        A        nothing
//       def f(self, x):             A.f      `+` 1, softmax 1; at least 2 sites: a call, a binary
//           return softmax(x) + 1
//
// A body opens a scope, and the index behind it closes it. So there is no recursion, and no Site is
// made. Annotations, patterns and comments are stepped over as a whole.
//
// Counterexample: `"a" + "b"` is counted as a `+`, but not as a site. The count of a word may be
// too high, and the least number of sites too low. So it tells what cannot be there, and nothing
// else.
//
// The cost: one look-up for each name and operator in a file.
#include "parser/outline.h"

#include <map>

#include "parser/shape.h"
#include "parser/tree.h"

namespace opguard {
namespace {

class Outliner {
 public:
  Outliner(const Tree& tree, std::string_view text, const Words& words)
      : items_(tree.items()), text_(text), words_(words) {}

  std::vector<Outline> run() {
    std::vector<Open> open = {{static_cast<uint32_t>(items_.size()), scope_at("<module>")}};
    for (uint32_t i = 0; i < items_.size();) {
      while (open.size() > 1 && i >= open.back().after) open.pop_back();
      const TreeItem& item = items_[i];
      if (is_skipped(item.kind)) {
        i = item.after;
        continue;
      }
      if (is_body(i)) open.push_back({item.after, scope_at(inner_name(open, item.parent))});
      note(i, result_[open.back().outline]);
      ++i;
    }
    return std::move(result_);
  }

 private:
  struct Open {
    uint32_t after;    // index of the first item behind the scope
    uint32_t outline;  // index in result_
  };

  Node node(uint32_t i) const { return {items_.data(), i}; }
  std::string_view text(Node n) const { return text_.substr(n.start(), n.end() - n.start()); }

  // No site is made of these.
  static bool is_skipped(Kind kind) {
    return kind == Kind::type || kind == Kind::type_parameter ||
           kind == Kind::type_alias_statement || kind == Kind::case_pattern ||
           kind == Kind::comment;
  }

  // Parameters and decorators belong to the scope around.
  bool is_body(uint32_t i) const {
    Kind owner = items_[items_[i].parent].kind;
    if (owner != Kind::function_definition && owner != Kind::class_definition &&
        owner != Kind::lambda)
      return false;
    return node(items_[i].parent).field(Field::body) == node(i);
  }

  std::string inner_name(const std::vector<Open>& open, uint32_t owner) const {
    std::string name(items_[owner].kind == Kind::lambda ? std::string_view("<lambda>")
                                                        : text(node(owner).field(Field::name)));
    return open.size() == 1 ? name : result_[open.back().outline].scope + "." + name;
  }

  uint32_t scope_at(const std::string& name) {
    auto [found, fresh] = index_.try_emplace(name, static_cast<uint32_t>(result_.size()));
    if (fresh) result_.push_back({name, 0, std::vector<uint32_t>(words_.size())});
    return found->second;
  }

  void note(uint32_t i, Outline& outline) const {
    const TreeItem& item = items_[i];
    auto count = [&](std::string_view word) {
      if (auto at = words_.find(word)) ++outline.count[*at];
    };
    switch (item.kind) {
      case Kind::identifier:
        return count(text(node(i)));
      case Kind::call:
        ++outline.least;
        return;
      case Kind::subscript:
        return count("[");
      case Kind::binary_operator: {
        count(text(node(i).field(Field::operator_)));
        Kind left = without_parentheses(node(i).field(Field::left)).kind();
        if (left != Kind::string && left != Kind::concatenated_string) ++outline.least;
        return;
      }
      case Kind::unary_operator:
      case Kind::augmented_assignment:
        return count(text(node(i).field(Field::operator_)));
      case Kind::comparison_operator:
        for (Node op : node(i).fields(Field::operators)) count(text(op));
        return;
      default:
        return;
    }
  }

  const std::vector<TreeItem>& items_;
  std::string_view text_;
  const Words& words_;
  std::vector<Outline> result_;
  std::map<std::string, uint32_t> index_;
};

}  // namespace

uint32_t Words::add(std::string_view word) {
  return positions_.try_emplace(std::string(word), static_cast<uint32_t>(positions_.size()))
      .first->second;
}

std::optional<uint32_t> Words::find(std::string_view word) const {
  auto found = positions_.find(word);
  return found == positions_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<Outline> outlines(const Tree& tree, std::string_view text, const Words& words) {
  return Outliner(tree, text, words).run();
}

}  // namespace opguard
