// matcher/scope_tree.h: the scopes of one side as they lie in each other: a package holds files, a
// file classes and functions, those their own.
//
//   root -> "" -> model/block.py -> Block -> forward     the scope "Block.forward"
//                                -> Block -> __init__
//   bag(Block)    the kinds and bodies of all sites of both
//
// A node may have no sites of its own: Block has children only.
//
// Counterexample: a set of operators in place of a multiset. A loop unrolled four times would be
// the same as the loop.
//
// The cost: a bag is made when first asked for and kept; bag_as() and bag_without() make one each
// time.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "matcher/features.h"

namespace opguard {

// What a piece of code does, whatever it is called: sorted multisets, with what lies inside.
struct Bag {
  std::vector<uint32_t> kinds, bodies;  // Side::kind, Side::body
  bool empty() const { return kinds.empty(); }
};

// Common elements of two sorted multisets.
size_t common(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b);
// Twice the common elements over the elements of both (Dice coefficient), of two sorted multisets.
double dice(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b);
// 0..1: half of it how alike the operators are, half how alike they read.
double likeness(const Bag& a, const Bag& b);

class ScopeTree {
 public:
  enum class Level : uint8_t { root, package, file, definition };
  struct Node {
    std::string_view name;
    Level level = Level::root;
    uint32_t parent = 0;
    int64_t scope = -1;  // index in Signatures::scopes(); -1: no site of its own
    std::map<std::string_view, uint32_t> children;
  };

  explicit ScopeTree(Side& side);

  static constexpr uint32_t kRoot = 0;
  const Node& node(uint32_t n) const { return nodes_[n]; }
  size_t size() const { return nodes_.size(); }
  uint32_t node_of_scope(uint32_t scope) const { return of_scope_[scope]; }
  // The package, the file: the nodes above a definition, or itself.
  uint32_t above(uint32_t n, Level level) const;

  // Of the node and all in it; made when first asked for.
  const Bag& bag(uint32_t n);
  // The same of those definitions inside that `like`, a node of another tree, has too: what ran of
  // a class is not all of it.
  Bag bag_as(uint32_t n, const ScopeTree& like, uint32_t other);
  // The same without the sites of some kinds.
  Bag bag_without(uint32_t n, const std::set<uint32_t>& kinds);
  // Last names of the functions called by code that runs in the node, with what lies inside;
  // sorted, each once.
  std::vector<uint32_t> called(uint32_t n);

  // Calls use(node) for the node and every node in it.
  template <typename Use>
  void each(uint32_t n, Use use) const {
    use(n);
    for (const auto& [name, child] : nodes_[n].children) each(child, use);
  }

 private:
  uint32_t child(uint32_t parent, std::string_view name, Level level);
  void add_sites(uint32_t n, Bag& bag);

  Side& side_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> of_scope_;
  std::vector<Bag> bags_;
};

}  // namespace opguard
