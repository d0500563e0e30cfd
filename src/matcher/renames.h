// matcher/renames.h: variables that have another name than before.
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
