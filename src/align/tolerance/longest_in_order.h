// align/tolerance/longest_in_order.h: as many partners as can be had in one order.
//
//   of a   may be b's   taken
//   0      2            -
//   1      0            0
//   2      1            1
//
// Counterexample: what may be several of b's is one of them at most.
//
// The cost: the length of all lists times the logarithm of that of the longest order.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace opguard {

// Pairs (i, j) that grow in both, as many as there are. `matches`: of each i the j that it may be
// paired with, ascending.
std::vector<std::pair<uint32_t, uint32_t>> longest_in_order(
    const std::vector<std::vector<uint32_t>>& matches);

}  // namespace opguard
