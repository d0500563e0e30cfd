// fleet/fleet_html.h: the ranks of two runs as a map, one HTML file that opens offline.
//
//   rank 0   =============ooooooooo    from top to bottom the ranks, from left to right the steps;
//   rank 1   =============ooooooooo    equal, then how what differs came to this rank
//   rank 2   ============##########
//
// Ranks are ordered by the groups that the program has named. A rank's own page is opened from its
// row: what `align --html` shows, of this rank alone.
// The cost: some 30 bytes a rank, and each sentence once: 10,000 ranks in 330 kB.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fleet/merge_parts.h"

namespace opguard {

// The file of a rank's own page: "rank-17.html", of its second process "rank-17-1.html".
std::string rank_page_name(const RankPart& rank);

// Where the ranks' own pages lie, as seen from the map, and which of Part::ranks have one.
struct RankPages {
  std::string folder;
  std::vector<size_t> of;
};

std::string format_fleet_html(const Part& all, const FleetVerdict& verdict,
                              const RankPages& pages = {});

}  // namespace opguard
