// Events are numbered anew, so whatever points at an event is moved with it.
//
//   events   0 1 2 3 4 5       steps  7 7 8 8 8 9      kept: those of step 8
//   becomes      0 1 2         begin and forward are counted among the kept; a forward that was cut
//                              off becomes kNone
//
// Occurrences are those among the kept events. Slots stay where they are: first_slot still leads
// there.
#include "align/pair/common_steps.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace opguard {
namespace {

void cut_log(ProcessLog& log, const StepPairs& steps, int side) {
  std::vector<uint32_t> kept_before(log.events.size() + 1);
  std::vector<bool> kept(log.events.size());
  for (uint32_t e = 0; e < log.events.size(); ++e) {
    kept[e] = !steps.besides(side, log.events.step(e));
    kept_before[e + 1] = kept_before[e] + kept[e];
  }
  if (kept_before.back() == log.events.size()) return;
  using Key = std::tuple<uint32_t, EventKind, Phase, uint32_t>;
  std::map<Key, uint32_t> counts;
  EventTable left;
  for (uint32_t e = 0; e < log.events.size(); ++e) {
    if (!kept[e]) continue;
    Event event = log.events[e];
    event.begin = kept_before[event.begin];
    if (event.forward != kNone)
      event.forward =
          event.forward < kept.size() && kept[event.forward] ? kept_before[event.forward] : kNone;
    event.occurrence = counts[{event.boundary, event.kind, event.phase, event.node}]++;
    left.push_back(event);
  }
  left.finish();
  log.events = std::move(left);
  for (Gap& gap : log.gaps) gap.event = kept_before[std::min<uint64_t>(gap.event, kept.size())];
}

}  // namespace

void cut_to_common_steps(Run& a, Run& b) {
  if (!have_common_steps(a, b)) return;
  std::map<int32_t, std::pair<std::vector<size_t>, std::vector<size_t>>> ranks;
  for (size_t i = 0; i < a.processes.size(); ++i) ranks[a.processes[i].rank].first.push_back(i);
  for (size_t i = 0; i < b.processes.size(); ++i) ranks[b.processes[i].rank].second.push_back(i);
  for (const auto& [rank, both] : ranks)
    for (size_t i = 0; i < both.first.size() && i < both.second.size(); ++i) {
      ProcessLog &of_a = a.processes[both.first[i]], &of_b = b.processes[both.second[i]];
      const StepPairs steps = pair_steps({{&of_a}, {&of_b}});
      if (!steps.windowed() || steps.stretches().front().count == 0) continue;
      cut_log(of_a, steps, 0);
      cut_log(of_b, steps, 1);
    }
}

}  // namespace opguard
