// fleet/make_part.h: what some ranks of two runs tell, from their logs.
//
//   part 3 of 8, 1,024 ranks      the logs of ranks 256 to 383, one rank after the other
//
// Ranks are told by the names of the logs. Neighbours go together, as they mostly lie on one
// machine. The cost: for each rank that of compare_runs(); of equal logs a few kilobytes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "align/judge/compare_runs.h"
#include "fleet/part.h"
#include "llvm/Support/Error.h"

namespace opguard {

// "3/8": 3 and 8. Nothing: it is no part of so many.
std::optional<std::pair<uint32_t, uint32_t>> part_number(const std::string& text);

// What is done with a rank that differs, while its logs are in memory.
using ShowRank = std::function<llvm::Error(const RankPart& rank, const JudgedRuns& judged)>;

// Error: a folder holds no log, or `show` failed. What is wrong with a rank's logs leaves that rank
// open.
llvm::Expected<Part> make_part(const std::string& dir_a, const std::string& dir_b, uint32_t number,
                               uint32_t of, const std::vector<Rule>& rules,
                               const CompareOptions& options, const ShowRank& show = {});

}  // namespace opguard
