// report/rank_text.h: how a difference came to each rank, in words. rank_text.cc has an example.
#pragma once

#include <string>
#include <vector>

#include "report/report.h"

namespace opguard {

const char* role_name(RankRole role);

// "rank 3", "ranks 0-2, 5". By number.
std::string ranks_text(const std::vector<int32_t>& ranks);

// "began here: model/attention.py:40  F.dropout, forward, step 0"
// Of side b's event, of a's where b has none.
std::string share_text(const Report& report, const RankShare& share);

// Ranks of which the same is to be said, the origins first.
struct RankLine {
  std::vector<int32_t> ranks;
  std::string text;
};
std::vector<RankLine> rank_lines(const Report& report);

}  // namespace opguard
