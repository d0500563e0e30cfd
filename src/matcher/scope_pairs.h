// matcher/scope_pairs.h: which scope of the new tree is which scope of the old one.
//
//   old                  new                    by
//   Attention.forward    Attention.forward      name and file, while nothing else holds more of it
//   Block.mlp            Block.feed_forward     operators: files, then classes, then functions
//   Model.loss           Model._loss            operators; Model.loss is a wrapper that calls it
//
// Two names may have been exchanged, or one body copied. So what a scope holds is weighed against
// the name it bears: a name kept is worth 0.1 of likeness, a file kept 0.2.
//
// Counterexample: where two scopes hold as much and nothing tells them apart, neither is it
// (given_up).
#pragma once

#include <cstdint>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "matcher/features.h"

namespace opguard {

// A moved scope shares at least this much of its operators (Dice coefficient of their kinds). Less
// than half: a variable with another name is another text in every operator that reads it.
inline constexpr double kMinScopeLikeness = 0.45;

struct ScopePairs {
  // By old scope: index in news.signatures().scopes(); -1: none. One scope has at most one partner.
  std::vector<int64_t> partner;
  // By old scope: the scope of its name in its file, where that is not its partner; -1: none.
  std::vector<int64_t> namesake;
  // By old scope: it may be one of several and is none; nor are its sites anywhere.
  std::vector<bool> given_up;
  // Names of a file that are others now: of its definitions, and of what it calls. By old scope the
  // position of its file's, -1: none.
  std::vector<Renames> renames;
  std::vector<int64_t> renames_of;
};

using FileName = std::pair<std::string_view, std::string_view>;  // package, name

// was_there: new scopes that were in the old tree and hold no boundary, and such files: they are no
// other's. A scope that kept its name and file is itself as long as nothing else holds more of it.
// Else it may be a new function that the one of its name calls, or the one that it exchanged names
// with. Renamed and moved scopes are found by their sites: files first, then classes and functions,
// then what is in them.
ScopePairs pair_scopes(Side& olds, Side& news, const std::vector<bool>& was_there,
                       const std::set<FileName>& files);

}  // namespace opguard
