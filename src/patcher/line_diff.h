// patcher/line_diff.h: which lines of two texts differ, as git tells it.
//
//   a    x = 1             b    x = 1             {2, 1, 2, 2}: line 2 of a is lines 2 and 3 of b
//        y = f(x)               z = x * 2
//        return y               y = f(z)
//                               return y
//
// The hunks are those that a user sees in `git diff`. Counterexample: a diff of our own. It might
// cut elsewhere, and a suspect would name other lines than the user's tools do.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace opguard {

// Lines [first, first + count) of each text, counted from 1; a count of 0 stands before `first`.
struct LineChange {
  uint32_t first_a = 0, count_a = 0, first_b = 0, count_b = 0;
  bool operator==(const LineChange&) const = default;
};

// In their order, without context. Empty for equal texts, and for what is no text.
std::vector<LineChange> changed_lines(std::string_view a, std::string_view b);

}  // namespace opguard
