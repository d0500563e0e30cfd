#include "matcher/scope_tree.h"

#include <algorithm>

namespace opguard {

// As often as in the one that has it less: {1, 1, 2} and {1, 2, 2} have two.
size_t common(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  size_t i = 0, j = 0, count = 0;
  while (i < a.size() && j < b.size()) {
    if (a[i] == b[j])
      ++count, ++i, ++j;
    else if (a[i] < b[j])
      ++i;
    else
      ++j;
  }
  return count;
}

double dice(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  if (a.empty() && b.empty()) return 0;
  return 2.0 * static_cast<double>(common(a, b)) / static_cast<double>(a.size() + b.size());
}

double likeness(const Bag& a, const Bag& b) {
  return 0.5 * dice(a.kinds, b.kinds) + 0.5 * dice(a.bodies, b.bodies);
}

ScopeTree::ScopeTree(Side& side) : side_(side), nodes_(1) {
  for (const ScopeSites& scope : side.signatures().scopes()) {
    uint32_t at = child(child(kRoot, scope.package, Level::package), scope.file, Level::file);
    for (std::string_view rest = scope.scope; !rest.empty();) {
      const std::string_view name = rest.substr(0, rest.find('.'));
      at = child(at, name, Level::definition);
      rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    }
    nodes_[at].scope = static_cast<int64_t>(of_scope_.size());
    of_scope_.push_back(at);
  }
  bags_.resize(nodes_.size());
}

uint32_t ScopeTree::child(uint32_t parent, std::string_view name, Level level) {
  const auto next = static_cast<uint32_t>(nodes_.size());
  auto [found, fresh] = nodes_[parent].children.try_emplace(name, next);
  const uint32_t at = found->second;
  if (fresh) nodes_.push_back({name, level, parent, -1, {}});
  return at;
}

uint32_t ScopeTree::above(uint32_t n, Level level) const {
  while (nodes_[n].level > level) n = nodes_[n].parent;
  return n;
}

void ScopeTree::add_sites(uint32_t n, Bag& bag) {
  if (nodes_[n].scope < 0) return;
  for (uint32_t i : side_.signatures().scopes()[static_cast<size_t>(nodes_[n].scope)].sites) {
    bag.kinds.push_back(side_.kind(i));
    bag.bodies.push_back(side_.body(i));
  }
}

const Bag& ScopeTree::bag(uint32_t n) {
  Bag& bag = bags_[n];
  if (!bag.empty()) return bag;
  each(n, [&](uint32_t inside) { add_sites(inside, bag); });
  std::sort(bag.kinds.begin(), bag.kinds.end());
  std::sort(bag.bodies.begin(), bag.bodies.end());
  return bag;
}

Bag ScopeTree::bag_as(uint32_t n, const ScopeTree& like, uint32_t other) {
  Bag bag;
  auto add = [&](auto& self, uint32_t at, uint32_t there) -> void {
    add_sites(at, bag);
    for (const auto& [name, child] : nodes_[at].children) {
      const auto& known = like.nodes_[there].children;
      if (auto found = known.find(name); found != known.end()) self(self, child, found->second);
    }
  };
  add(add, n, other);
  std::sort(bag.kinds.begin(), bag.kinds.end());
  std::sort(bag.bodies.begin(), bag.bodies.end());
  return bag;
}

Bag ScopeTree::bag_without(uint32_t n, const std::set<uint32_t>& kinds) {
  Bag bag;
  each(n, [&](uint32_t inside) {
    if (nodes_[inside].scope < 0) return;
    for (uint32_t i :
         side_.signatures().scopes()[static_cast<size_t>(nodes_[inside].scope)].sites) {
      if (kinds.contains(side_.kind(i))) continue;
      bag.kinds.push_back(side_.kind(i));
      bag.bodies.push_back(side_.body(i));
    }
  });
  std::sort(bag.kinds.begin(), bag.kinds.end());
  std::sort(bag.bodies.begin(), bag.bodies.end());
  return bag;
}

std::vector<uint32_t> ScopeTree::called(uint32_t n) {
  std::vector<uint32_t> names;
  each(n, [&](uint32_t inside) {
    if (nodes_[inside].scope < 0) return;
    for (uint32_t i : side_.signatures().scopes()[static_cast<size_t>(nodes_[inside].scope)].sites)
      if (side_.site(i).form == Form::call && !side_.dead(i)) names.push_back(side_.kind(i));
  });
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace opguard
