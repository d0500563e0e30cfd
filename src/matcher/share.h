// matcher/share.h: one set of boundary ids for two trees.
#pragma once

#include <string>
#include <vector>

#include "matcher/match.h"
#include "parser/site.h"
#include "plan/plan.h"

namespace opguard {

// A boundary at its site in one tree.
struct Bound {
  std::string boundary;
  Site site;
  std::string variant{};  // probe_variant
  bool operator==(const Bound&) const = default;
};

// Every boundary of the plan where it was made.
std::vector<Bound> bind(const Plan& plan);

// The boundaries of tree b. Those of plan a that `matches` found among `sites_b` have a's ids.
// Those of b's own plan that are not among them have ids that a does not use: one-sided operators
// are probed too.
std::vector<Bound> share_boundaries(const Plan& a, const MatchSet& matches,
                                    const std::vector<Site>& sites_b, const Plan& b);

}  // namespace opguard
