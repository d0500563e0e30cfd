#include "report/trace_choice.h"

namespace opguard {

// A lane stays where all its rows are left out: its process is in the trace, without events.
std::vector<Lane> chosen_lanes(const Report& report, const TraceChoice& choice) {
  std::vector<Lane> lanes = lanes_of(report);
  std::erase_if(lanes, [&](const Lane& lane) { return !choice.has_rank(lane.rank); });
  if (choice.steps.all()) return lanes;
  for (Lane& lane : lanes)
    std::erase_if(lane.rows, [&](const LaneRow& row) {
      // Steps may be paired otherwise than by number: a pair goes with a's, what only b has with
      // b's own.
      const bool of_a = row.a != kNone;
      const ProcessLog& log = of_a ? report.a.processes[lane.a] : report.b.processes[lane.b];
      return !choice.steps.holds(log.events.step(of_a ? row.a : row.b));
    });
  return lanes;
}

}  // namespace opguard
