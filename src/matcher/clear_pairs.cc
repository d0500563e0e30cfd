#include "matcher/clear_pairs.h"

#include <algorithm>

namespace opguard {

std::vector<std::pair<uint32_t, uint32_t>> clear_pairs(
    const std::vector<std::unordered_map<uint32_t, double>>& values, size_t columns,
    double margin) {
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  std::vector<bool> settled(values.size(), false), used(columns, false);
  for (bool more = true; more;) {
    more = false;
    std::vector<Best> rows(values.size()), best(columns);
    for (uint32_t i = 0; i < values.size(); ++i) {
      if (settled[i]) continue;
      for (const auto& [j, value] : values[i]) {
        if (used[j]) continue;
        rows[i].offer(value, j);
        best[j].offer(value, i);
      }
    }
    for (uint32_t i = 0; i < values.size(); ++i) {
      if (settled[i] || rows[i].of < 0) continue;
      const auto j = static_cast<uint32_t>(rows[i].of);
      if (used[j] || best[j].of != i) continue;
      // The lead is the lesser of the two: over j's rivals, and over i's other places.
      if (rows[i].first - std::max(rows[i].second, best[j].second) < margin) continue;
      more = settled[i] = used[j] = true;
      pairs.emplace_back(i, j);
    }
  }
  return pairs;
}

}  // namespace opguard
