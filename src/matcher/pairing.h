// matcher/pairing.h: which site of one stretch of code is which of another.
//
//   a    h = norm(x)   q = h @ wq   k = h @ wk            v = h @ wv
//   b    u = norm(x)   q = u @ wq   k = u @ wk   log(k)   v = u @ wv       h is u: Renames
//
// Two passes: the first finds variables that bear another name, the second pairs with those names
// exchanged. Pairs keep their order, so `k` cannot be taken for `v`.
//
// Counterexample: of `x + 1` twice in a and three times in b nothing tells which is new. Each is a
// twin: its lead is 0, and the boundary becomes ambiguous.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "matcher/features.h"
#include "matcher/order.h"

namespace opguard {

struct Pairing {
  // One per site of a: positions in b. A twin is a site as good as the one at `at`, of which there
  // are more or fewer than before: Placement::lead is 0 then.
  std::vector<Placement> placed;
  Renames renames;         // variables of a under other names in b
  bool identical = false;  // equal site by site
};

enum class Likeness : uint8_t {
  whole,    // of sites that stand where they stood: all tags
  of_what,  // of sites that moved: only what they are
  of_text,  // as of_what, under unchanged names
};

// a and b: sites in evaluation order. Pairs keep that order. known: names that are others now.
Pairing pair_sites(Side& olds, const std::vector<uint32_t>& a, Side& news,
                   const std::vector<uint32_t>& b, Likeness likeness, const Renames& known = {});

}  // namespace opguard
