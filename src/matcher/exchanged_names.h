// matcher/exchanged_names.h: definitions that took each other's names.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "matcher/scope_tree.h"

namespace opguard {

// A node and the one of its name in the new tree.
struct NameClaim {
  uint32_t was, is;
  double likeness;
};

// Of claims side by side: gives the nodes of each cycle what they are like. Every one of them is
// more like the next one's sites than like those that have its name. What they call by a name that
// is itself in a cycle tells nothing: its callers call the same function by another name. Where
// nothing else tells, the claims are taken out, and their old nodes returned.
std::vector<uint32_t> exchange_names(Side& new_side, ScopeTree& olds, ScopeTree& news,
                                     const std::function<double(uint32_t, uint32_t)>& alike,
                                     std::vector<NameClaim>& claims);

}  // namespace opguard
