// The runs are aligned once to find how far both go, and aligned again by who asked, without the
// rest. A pair that moved may stand anywhere, so the last pair in order says where the common end
// is.
#include "align/pair/common_end.h"

#include <algorithm>

#include "align/pair/alignment.h"

namespace opguard {
namespace {

// The events up to the last that has a partner. One that moved says nothing of how far both are.
uint64_t common_events(const ProcessPair& both, int side) {
  uint64_t common = 0;
  for (const Pair& pair : both.pairs)
    if (!pair.moved) common = std::max<uint64_t>(common, 1 + (side == 0 ? pair.a : pair.b));
  return common;
}

uint64_t truncate(ProcessLog& log, uint64_t events) {
  const uint64_t left_out = log.events.size() - events;
  if (left_out == 0) return 0;
  log.slots.truncate(log.events[events].first_slot);
  log.events.truncate(events);
  return left_out;
}

}  // namespace

std::array<uint64_t, 2> read_to_common_end(Run& a, Run& b, std::array<bool, 2> failed) {
  std::array<uint64_t, 2> left_out{};
  if (!failed[0] && !failed[1] && !a.cut_short() && !b.cut_short()) return left_out;
  auto ends_early = [&](int side, const ProcessLog& log) {
    return failed[side] || log.cut_short();
  };
  for (const ProcessPair& both : align_runs(a, b).processes) {
    if (both.a < 0 || both.b < 0) continue;
    ProcessLog* logs[2] = {&a.processes[both.a], &b.processes[both.b]};
    for (int side : {0, 1})
      if (ends_early(1 - side, *logs[1 - side]) && !ends_early(side, *logs[side]))
        left_out[side] += truncate(*logs[side], common_events(both, side));
  }
  return left_out;
}

}  // namespace opguard
