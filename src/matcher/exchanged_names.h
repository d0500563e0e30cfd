// matcher/exchanged_names.h: definitions that took each other's names.
//
//   old    def fast(x): return x @ w          def exact(x): return (x.double() @ w).float()
//   new    def exact(x): return x @ w         def fast(x): return (x.double() @ w).float()
//
// By name both changed their bodies; by their sites both kept them. `fast` is more like the new
// `exact`, `exact` more like the new `fast`: a cycle, so the names are what changed.
//
// Counterexample: functions that do little but call what was exchanged. They read exchanged too, so
// a cycle must gain 0.1 without such calls.
//
// The cost: likenesses of those that share an operator of one kind. Of more than 64 names beside
// each other only those are compared in which something reads alike.
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
