// report/region.h: where a region stands in the sources.
//
//   a  model/attention.py:31-34 in Attention.forward, 3 operators
//   b  model/attention.py:40 in Attention.forward, 1 operator
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "align/judge/verdict.h"

namespace opguard {

// What a region has in one function: a region that calls a helper has a span in each.
struct RegionSpan {
  std::string package, file, path, function;
  uint32_t first = 0, last = 0;  // lines
  uint32_t operators = 0;        // distinct places of them
};

// Of one side. The function of its first operator comes first; operators of unknown place are left
// out. Empty where the side has no such operator.
std::vector<RegionSpan> region_spans(const Run& run, const std::vector<EventRef>& region);

// Of both sides. A structure that is no region (a matched operator of another shape) is its own.
std::array<std::vector<RegionSpan>, 2> region_of(const Run& a, const Run& b, const Pivot& pivot);

// "model/attention.py:31-34 in Attention.forward, 3 operators"; what other functions have follows.
std::string region_text(const std::vector<RegionSpan>& spans);

// "7-9", "7".
std::string lines_text(uint32_t first, uint32_t last);

}  // namespace opguard
