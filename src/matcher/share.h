// matcher/share.h: one set of boundary ids for two trees.
//
//   plan a   attn.softmax:q7k2, mlp.linear:d2mx
//   plan b   attn.softmax:p0ab (matched with q7k2), mlp.gelu:77ab (b's own)
//   bound    a: q7k2, d2mx      b: q7k2, 77ab
//
// Events pair by id, so what is the same operator must have one id in both logs. Counterexample: an
// id that both plans made and that the matcher did not bind. b's becomes another, "d2mxb": two
// different operators would pair otherwise.
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
