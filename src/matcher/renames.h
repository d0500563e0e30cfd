// matcher/renames.h: variables that have another name than before.
//
//   before   h = norm(x); q = h @ wq; k = h @ wk
//   now      u = norm(x); q = u @ wq; k = u @ wk       h is u: three votes of three
//
// A vote is a place in two paired sites where all else is equal and one name stands for another.
// The old name must be gone from the new sites, and the new name must not have been there.
//
// Counterexample: a name that became `y` twice and `z` twice. More than half of its votes are
// needed, and of the new name's: it keeps its name.
//
// The cost: linear in the texts of the paired sites.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "matcher/features.h"

namespace opguard {

// Of two stretches of code, sites a and b, paired as `pairs` (positions in a and b) tell. These are
// the names that are gone from a and stand, wherever they stood, under one name that is new in b.
Renames find_renames(const Side& olds, const std::vector<uint32_t>& a, const Side& news,
                     const std::vector<uint32_t>& b,
                     const std::vector<std::pair<size_t, size_t>>& pairs);

// The tag as it reads with the new names. bare: its site's callee is a name, not a method.
std::string renamed_tag(const std::string& tag, bool bare, const Renames& renames);

}  // namespace opguard
