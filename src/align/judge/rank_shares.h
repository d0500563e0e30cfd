// align/judge/rank_shares.h: on which ranks a difference began, and by which collective it came to
// the others: docs/design/judgement.md, "Across ranks".
#pragma once

#include <vector>

#include "align/judge/value_flow.h"
#include "align/judge/verdict.h"
#include "align/pair/timeline.h"

namespace opguard {

// One side's walk back from the first differing model values of every rank.
struct RankWalk {
  std::vector<Origin> origins;
  std::vector<Arrival> arrivals;
};

// Every rank of either run, by rank: the earlier of its first origin and its first arrival. A rank
// of `differing` (processes whose model values differ, of side a) with neither is unknown.
std::vector<RankShare> share_by_rank(const Timeline& timeline, const RankWalk (&walks)[2],
                                     const std::vector<int32_t>& differing);

}  // namespace opguard
