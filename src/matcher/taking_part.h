// matcher/taking_part.h: which sites of a tree are compared with a plan's.
//
//   plan    has x.grad = None as a boundary      a tree's writes of `.grad` take part, no others
//
// Most sites of a tree that are quiet (parser/site.h) are no operator's. Taking part they would be
// neighbours of those that are, and change their signatures.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "parser/site.h"

namespace opguard {

// Forms and names of a plan's quiet boundaries.
class QuietKinds {
 public:
  void add(const Site& site);
  // Every site that is not quiet, and the quiet ones of a known kind.
  bool take(const Site& site) const;

 private:
  std::set<std::string> kinds_;
};

// Indices of the sites taken, in order.
std::vector<uint32_t> taking_part(const std::vector<Site>& sites, const QuietKinds& kinds);

}  // namespace opguard
