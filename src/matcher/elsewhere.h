// matcher/elsewhere.h: what the old tree held beside the plan's scopes. A call that is gone reads
// like others that were always there; without this a matcher takes one of them for the call, moved.
//
//   plan        x.sum(dim=-1) in Loss.forward
//   old tree    x.sum(dim=-1) in metrics.py as well, without a boundary: a key of 32 bits
//   new tree    gone from Loss.forward, still in metrics.py: that one is itself, the call is lost
//
// Counterexample: the text of all other sites. A plan would be as large as the tree; a key says
// only "was there".
//
// The cost: one hash and one binary search for each site and scope asked for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "matcher/search.h"
#include "matcher/signature.h"
#include "parser/site.h"
#include "plan/plan.h"

namespace opguard {

// Of the sites of one file, outside of the plan's scopes. A key is of the file, of each scope, or
// of each site that reads as a boundary does. Plan::elsewhere is all of them, sorted. search: where
// every boundary may be (Search::everywhere), which has chosen the sites.
std::vector<uint32_t> keys_elsewhere(const std::vector<Site>& sites, const Plan& plan,
                                     const Search& search);

// Which scopes and sites of a new tree were there when the plan was made. One in 2^32 / (number of
// keys) of those that were not is taken for one: for 100,000 keys one in 43,000.
class Elsewhere {
 public:
  explicit Elsewhere(const std::vector<uint32_t>& keys) : keys_(keys) {}
  bool had(const ScopeSites& scope) const;
  bool had_file(std::string_view package, std::string_view file) const;
  // By site of the scope: it is one of those that were there. k equal sites are the first k.
  std::vector<bool> had_sites(const ScopeSites& scope, const std::vector<const Site*>& sites) const;

 private:
  const std::vector<uint32_t>& keys_;
};

}  // namespace opguard
