// suspects/number_ways.h: where the numbers that a candidate was given can come from.
//
//   where group0.lr can come from: 0.0002 in a, 0.0 in b
//     b  train.py:41     group["lr"] = lr
//        train.py:38     lr = get_lr(it)
//        train.py:20-31  def get_lr(it):   <- differs
//
// A way is said once. Run b's way to a hunk stands for run a's to the same, or to another hunk of
// the same statement.
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "suspects/stand.h"

namespace opguard {

struct NumberWays {
  std::vector<Number> numbers;
  // Where the ways end: hunks, each with its place among the ways, and lines of settings files.
  std::map<uint32_t, size_t> origins;
  // Where ways end that are far longer than the shortest.
  std::set<uint32_t> far;
  // Hunks that the conditions read under which the candidate stands, as `origins`.
  std::map<uint32_t, size_t> decides;
  std::set<std::pair<uint32_t, uint32_t>> texts;
};

// stands: the candidate's, of both sides. ran: the hunks that ran before it.
NumberWays find_ways(const Programs& programs, PivotKind kind, const PivotView& both,
                     Stand (&stands)[2], const std::vector<Hunk>& ran);

}  // namespace opguard
