// matcher/moved.h: boundaries that left their scope: an expression taken into a helper, statements
// that changed places, functions too unlike to be paired whole.
//
//   before    def forward(x): y = x * self.scale / n            after   def forward(x): y = norm(x)
//                                                                       def norm(x): return x * ...
//
// `forward` has lost `*` and newly calls `norm`, in which a `*` reads alike: it is that one. The
// less there is to tell where a site went, the more alike it must be. Half of its tags do where a
// call tells it, 0.85 in another file of its folder. Far away only a group that moved together is
// followed.
//
// Counterexample: an equal line in a function that was there before, with no boundary in it. It was
// that function's own all the time (Leftovers::was_there).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "matcher/features.h"

namespace opguard {

struct Move {
  uint32_t from = 0;      // old site
  int64_t to = -1;        // new site; -1: nothing like it is free
  int64_t rival = -1;     // second best
  double margin = 0;      // by which `to` leads all others, and this site all other old ones
  bool called = false;    // a call tells it, whatever else reads like it
  bool near_tie = false;  // `to` and `rival`, or two old sites and `to`, fit as well
  bool enough = false;    // alike enough to be bound
  const char* why = "";   // what tells that it is this one
  bool operator==(const Move&) const = default;
};

// What the pairing of scopes left over.
struct Leftovers {
  std::vector<int64_t> partner;   // by old scope: new scope, -1: none
  std::vector<int64_t> namesake;  // ScopePairs::namesake
  std::vector<uint32_t> sites;    // old sites without a place
  std::vector<bool> taken;        // by new site
  std::vector<bool> was_there;    // by new scope: no boundary's, and there before
  // Old sites whose place in their scope is not sure: edited, or in another block. One that fits a
  // function newly called from there as well gives its place up.
  std::vector<std::pair<uint32_t, uint32_t>> weak;  // old site, new site
};

// The weak pairs to give up. Their old sites are leftovers then, their new ones free.
std::vector<std::pair<uint32_t, uint32_t>> contested(Side& olds, Side& news, const Leftovers& left);

std::vector<Move> find_moved(Side& olds, Side& news, const Leftovers& left);

}  // namespace opguard
