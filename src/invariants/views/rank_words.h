// invariants/views/rank_words.h: values on several ranks, in words.
//
// Of a digest the first four hexadecimal digits are shown: enough to see which ranks agree. Of
// eight ranks at most, so a row of a thousand ranks stays a line.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "invariants/views/rank_views.h"

namespace opguard {

// "5f1c on rank 0, 90aa on rank 1": of the values, or of the gradients where the values are equal.
template <typename Ranks>
std::string values_by_rank(const Ranks& ranks, const std::vector<const RankParameter*>& held,
                           bool gradients) {
  std::string words = gradients ? "gradients " : "";
  constexpr size_t kMostRanks = 8;
  for (size_t i = 0; i < held.size() && i < kMostRanks; ++i) {
    const auto& value = gradients ? held[i]->gradient : held[i]->value;
    char digits[24] = "none";
    if (value) std::snprintf(digits, sizeof digits, "%04x..", static_cast<unsigned>(*value >> 48));
    words += (i ? ", " : "") + std::string(digits) + " on rank " + std::to_string(ranks[i].first);
  }
  return words;
}

// "all_reduce [8] on rank 0, broadcast [8] on rank 1"
template <typename Calls>
std::string collective_words(const Calls& calls) {
  std::string words;
  for (const auto& [rank, call] : calls) {
    if (!words.empty()) words += ", ";
    words += call.second.function + " [";
    for (size_t i = 0; i < call.second.shape.size(); ++i)
      words += (i ? ", " : "") + std::to_string(call.second.shape[i]);
    words += "] on rank " + std::to_string(rank);
  }
  return words;
}

}  // namespace opguard
