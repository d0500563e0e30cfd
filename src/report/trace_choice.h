// report/trace_choice.h: which ranks and steps a trace for Perfetto shows.
//
//   --trace-rank 3 --trace-rank 5 --trace-steps 30..40      two of 1,024 ranks, eleven steps
//
// What is not chosen is not in the trace, and not counted there: the verdict tells of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "record/step_window.h"
#include "report/rows.h"

namespace opguard {

struct TraceChoice {
  std::vector<int32_t> ranks;  // none: all
  StepWindow steps;

  bool all() const { return ranks.empty() && steps.all(); }
  bool has_rank(int32_t rank) const {
    return ranks.empty() || std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
  }
};

// The chosen ranks' lanes, of each the rows of the chosen steps. A pair is in the step of run a.
std::vector<Lane> chosen_lanes(const Report& report, const TraceChoice& choice);

}  // namespace opguard
