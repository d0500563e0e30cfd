// matcher/scope_pairs.h: which scope of the new tree is which scope of the old one.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "matcher/features.h"

namespace opguard {

// A moved scope shares at least this much of its operators (Dice coefficient of their kinds).
inline constexpr double kMinScopeLikeness = 0.5;

// Pairs of indices in old_side.signatures().scopes() and new_side's. A scope that kept its name and
// file is itself; a renamed or moved one is found by its sites. One scope has at most one partner.
std::vector<std::pair<uint32_t, uint32_t>> pair_scopes(Side& old_side, Side& new_side);

}  // namespace opguard
