#include "matcher/scope_likeness.h"

#include <algorithm>

namespace opguard {
namespace {

// What a scope without its name must share with another, if nothing in it reads alike.
constexpr size_t kMinCommon = 3;

}  // namespace

double name_likeness(std::string_view a, std::string_view b) {
  const size_t most = std::min(a.size(), b.size());
  size_t head = 0, tail = 0;
  while (head < most && a[head] == b[head]) ++head;
  while (tail < most - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
  return static_cast<double>(head + tail) / static_cast<double>(std::max(a.size(), b.size()));
}

double held(const Bag& a, const Bag& b) {
  if (a.empty()) return 0;
  return static_cast<double>(common(a.kinds, b.kinds) + common(a.bodies, b.bodies)) /
         static_cast<double>(a.kinds.size() + a.bodies.size());
}

//   x.view(); x.to()      two common kinds and no common text: any function may have those
bool share_enough(const Bag& a, const Bag& b) {
  return common(a.bodies, b.bodies) > 0 || common(a.kinds, b.kinds) >= kMinCommon;
}

std::set<std::string> callees(const Side& side, const ScopeTree& tree, uint32_t n) {
  std::set<std::string> names;
  tree.each(n, [&](uint32_t inside) {
    if (tree.node(inside).scope < 0) return;
    for (uint32_t i :
         side.signatures().scopes()[static_cast<size_t>(tree.node(inside).scope)].sites)
      if (const Site& site = side.site(i); site.form == Form::call && site.receiver.empty())
        names.insert(site.callee);
  });
  return names;
}

}  // namespace opguard
