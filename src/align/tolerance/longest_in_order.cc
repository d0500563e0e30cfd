// The longest increasing subsequence, of i ascending and of each i's partners descending.
//
//   matches   0: {2}   1: {0}   2: {1}
//   j         2, 0, 1                      ends: [2], [0], [0 1]      found (1, 0), (2, 1)
//
// Descending is what keeps an i from being taken twice. Its second partner is smaller than its
// first, so it replaces that one and cannot follow it.
#include "align/tolerance/longest_in_order.h"

#include <algorithm>

namespace opguard {

std::vector<std::pair<uint32_t, uint32_t>> longest_in_order(
    const std::vector<std::vector<uint32_t>>& matches) {
  struct Link {
    uint32_t i, j;
    size_t before;  // number of a link; SIZE_MAX: none
  };
  std::vector<Link> links;
  std::vector<size_t> ends;  // by length - 1: the link with the smallest j
  for (uint32_t i = 0; i < matches.size(); ++i)
    for (auto j = matches[i].rbegin(); j != matches[i].rend(); ++j) {
      const auto at = std::lower_bound(ends.begin(), ends.end(), *j, [&](size_t link, uint32_t to) {
        return links[link].j < to;
      });
      links.push_back({i, *j, at == ends.begin() ? SIZE_MAX : *(at - 1)});
      if (at == ends.end())
        ends.push_back(links.size() - 1);
      else
        *at = links.size() - 1;
    }
  std::vector<std::pair<uint32_t, uint32_t>> found;
  for (size_t link = ends.empty() ? SIZE_MAX : ends.back(); link != SIZE_MAX;
       link = links[link].before)
    found.emplace_back(links[link].i, links[link].j);
  std::reverse(found.begin(), found.end());
  return found;
}

}  // namespace opguard
