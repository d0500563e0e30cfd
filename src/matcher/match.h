// matcher/match.h: which site of a tree is which boundary of a plan. Pure: values to values.
//
//   plan                                   tree, edited
//   attn.softmax:q7k2  softmax(s, dim=-1)  softmax(x, dim=-1)     matched: a renamed variable
//   mlp.linear:d2mx    fc1(x)              nowhere                lost
//   loss.mul:77ab      0.1 * aux           two equal lines now    ambiguous
//
// Scopes are paired first, then the sites in them, in order; what is left is looked for elsewhere
// (moved.h). One assignment over the whole tree: a boundary gets at most one site, a site at most
// one boundary. A near tie is ambiguous, a boundary with no site is lost; never a guess.
//
// Counterexample: the line number. It says where a site was when the plan was made, and is a hint.
//
// The cost: a scope that did not change is paired without a comparison. Whole transformers (2,860
// files) takes 4.3 s of CPU, of which parsing is nearly all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "matcher/template.h"
#include "parser/site.h"
#include "plan/plan.h"

namespace opguard {

enum class MatchStatus : uint8_t { matched, lost, ambiguous };

struct Match {
  std::string boundary;
  MatchStatus status = MatchStatus::lost;
  int64_t site = -1;       // index in the sites given; -1 unless matched
  double score = 0;        // 0..1: weighted overlap of tags, with context
  int64_t runner_up = -1;  // index in the sites given
  // Of a match: score less the margin, by which order, place and calls too tell that it is not the
  // runner-up. Else the overlap of its tags.
  double runner_up_score = 0;
  bool unchanged = false;  // matched where it was: the same operator, block and targets
  std::string why;         // one sentence; never empty
  bool operator==(const Match&) const = default;
};

struct MatchSet {
  std::vector<Match> matches;  // one per boundary, in the plan's order
  size_t count(MatchStatus status) const;
};

// Signature of every site: weighted tags from its form, names, arguments, scope and neighbours.
std::vector<std::vector<Tag>> signatures(const std::vector<Site>& sites,
                                         const TemplateLibrary& templates);

// One assignment over the whole tree: a boundary gets at most one site, a site at most one
// boundary. A near tie is ambiguous, a boundary with no site is lost; never a guess.
MatchSet match_sites(const std::vector<Site>& sites, const TemplateLibrary& templates,
                     const Plan& plan);

std::string dump(const MatchSet& matches, const std::vector<Site>& sites);

}  // namespace opguard
