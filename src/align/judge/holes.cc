// What makes a log a hole, and what a verdict keeps:
//
//   lost records, a gap in the middle     in any log
//   an early end                          of a rank's first process, or with model values in it
//
//   diverged, the pivot is an unequal     stays: both logs hold both events
//   pair
//   diverged by absence, identical        inconclusive
//   the other side only goes on           inconclusive, without candidates
//
// Counterexample: an unequal pair behind a beginning that was removed (`--keep`). It differs, and
// nothing says that it is the first.
#include "align/judge/holes.h"

#include <algorithm>
#include <set>

namespace opguard {
namespace {

bool incomplete(const ProcessLog& log) {
  return log.lost > 0 || !log.damage.empty() || !log.closed;
}

bool holds_model_values(const ProcessLog& log) {
  for (uint64_t i = 0; i < log.slots.size(); ++i)
    if (log.slots[i].flags & kModelValue) return true;
  return false;
}

// Records missing in the middle are a hole in whatever log it is. One that only ends early is,
// where it is the program's: the first process of each rank, however little of its log is left.
const ProcessLog* find_hole(const Run& run) {
  std::set<int32_t> ranks;
  for (const ProcessLog& log : run.processes) {
    const bool first = ranks.insert(log.rank).second;
    if (log.lost > 0 || !log.gaps.empty()) return &log;
    if (incomplete(log) && (first || holds_model_values(log))) return &log;
  }
  return nullptr;
}

// What came before a log's beginning was removed: of what differs nothing is known to be the first.
bool begins_late(const ProcessLog* log) {
  return log && log->removed.segments > 0 && !log->gaps.empty() && log->gaps.front().event == 0;
}

bool unequal_pair(const Pivot& pivot, const Alignment& alignment) {
  for (const ProcessPair& process : alignment.processes) {
    if (process.a < 0 || process.b < 0 || process.a != pivot.a.process ||
        process.b != pivot.b.process)
      continue;
    for (const Pair& pair : process.pairs)
      if (pair.a == pivot.a.event && pair.b == pivot.b.event)
        return pair.equality != Equality::equal;
  }
  return false;
}

}  // namespace

bool computed_last(const Verdict& verdict) {
  return std::any_of(verdict.why.begin(), verdict.why.end(), [](const Reason& reason) {
    return reason.kind == ReasonKind::last_values_differ;
  });
}

Verdict limit_by_holes(Verdict verdict, const Run& a, const Run& b, const Alignment& alignment) {
  const ProcessLog *hole_a = find_hole(a), *hole_b = find_hole(b);
  if (!hole_a && !hole_b) return verdict;
  if (verdict.outcome == Outcome::inconclusive && !computed_last(verdict)) return verdict;
  // Where one run only goes on longer, a process of the other that was killed is why. What its
  // peers do then, an exception in a collective above all, is no operator's doing.
  const bool cut_short = verdict.longer >= 0 && (verdict.longer == 0 ? hole_b : hole_a) != nullptr;
  if (!cut_short && verdict.outcome == Outcome::diverged && !verdict.candidates.empty() &&
      unequal_pair(verdict.candidates[0], alignment) && !begins_late(hole_a) &&
      !begins_late(hole_b))
    return verdict;
  if (cut_short) {
    verdict.candidates.clear();
    verdict.ranks.clear();
  }
  const int side = cut_short ? 1 - verdict.longer : hole_a ? 0 : 1;
  Reason hole{.kind = ReasonKind::log_not_whole, .side = side};
  hole.events[side].process =
      int32_t(side == 0 ? hole_a - a.processes.data() : hole_b - b.processes.data());
  if (computed_last(verdict)) {
    verdict.why.push_back(hole);
    return verdict;
  }
  verdict.why = {{cut_short || verdict.outcome == Outcome::identical ? ReasonKind::held_agrees
                                                                     : ReasonKind::held_differs},
                 hole};
  verdict.outcome = Outcome::inconclusive;
  return verdict;
}

}  // namespace opguard
