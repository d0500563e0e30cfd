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
