// A lead knows where a walk ended; a candidate says what a user reads. In between stand two moves.
//
//   the other side   a lead of b alone gets a's operators of the same gap, if a has a lead there
//   blame            the operator may be named elsewhere (blame.cc): then the region is that alone
//
// Counterexample: a pair that is equal in both runs. No run parts there, whatever led to it, and
// add() does not take it.
#include "align/judge/naming.h"

#include <algorithm>
#include <string>
#include <utility>

#include "align/judge/walk_back.h"

namespace opguard {
namespace {

// Two candidates of the same boundaries say the same to a user.
bool same_place(const Evidence& evidence, const Pivot& x, const Pivot& y) {
  auto boundary = [&](int side, const EventRef& ref) {
    return ref.process < 0 ? std::string() : evidence.boundary(side, ref);
  };
  return boundary(0, x.a) == boundary(0, y.a) && boundary(1, x.b) == boundary(1, y.b);
}

// No equal pair lies between two events of one run alone.
bool same_gap(const Evidence& evidence, const Found& x, const Found& y) {
  if (x.position.process != y.position.process || x.position.step != y.position.step) return false;
  const Found& in_a = x.side == 0 ? x : y;
  const uint64_t lo = std::min(x.position.at, y.position.at),
                 hi = std::max(x.position.at, y.position.at);
  for (const ProcessPair& both : evidence.timeline.alignment().processes) {
    if (both.a != in_a.origin.event.process) continue;
    auto at = std::lower_bound(both.pairs.begin(), both.pairs.end(), lo / 2 + 1,
                               [](const Pair& pair, uint64_t a) { return pair.a < a; });
    for (; at != both.pairs.end() && 2ull * at->a < hi; ++at)
      if (at->equality == Equality::equal) return false;
  }
  return true;
}

// The slot to show, on side b if it has one: where the walk ended, or what differs from the
// partner's.
uint32_t telling_slot(const Evidence& evidence, const Pivot& pivot, const Found& found) {
  const int side = pivot.b.process >= 0 ? 1 : 0;
  const EventRef& shown = side == 1 ? pivot.b : pivot.a;
  if (side == found.side && shown == found.origin.event) return uint32_t(found.origin.slot);
  const Flow flow(*evidence.index[side], *evidence.index[1 - side],
                  flow_options(evidence, side, {}));
  const EventSlots slots = evidence.log(side, shown).slots_of(evidence.event(side, shown));
  for (const Slot& slot : slots) {
    const uint64_t at = slots.index_of(slot);
    if (slot.kind != SlotKind::in && has_value(slot) && flow.differs({shown, at}))
      return uint32_t(at);
  }
  return kNone;
}

}  // namespace

Reason why(const Evidence& evidence, const Blame& blame, const Pivot& pivot) {
  switch (pivot.kind) {
    case PivotKind::value:
      return {ReasonKind::other_result};
    case PivotKind::scalar:
      return {ReasonKind::other_argument};
    case PivotKind::structure:
      if (pivot.a.process >= 0 && pivot.b.process >= 0) {
        if (evidence.boundary(0, pivot.a) != evidence.boundary(1, pivot.b))
          return {ReasonKind::other_operators};
        return {(evidence.event(0, pivot.a).flags ^ evidence.event(1, pivot.b).flags) & kInGraph
                    ? ReasonKind::in_graph_of_one
                    : ReasonKind::other_shape};
      }
      return {.kind = ReasonKind::only_one_run, .side = pivot.a.process >= 0 ? 0 : 1};
    case PivotKind::input:
      if (evidence.boundary_is_shared(pivot.a, pivot.b) && blame.writes_elsewhere(pivot.a, pivot.b))
        return {ReasonKind::writes_elsewhere};
      return {blame.given_another(pivot.a, pivot.b) ? ReasonKind::given_another
                                                    : ReasonKind::made_by_nobody};
    case PivotKind::race:
      return {ReasonKind::overwritten};
    default:
      return {};
  }
}

namespace {

// It read and left the same in both runs, so no run parts there: what a walk took for its memory
// was another tensor's.
bool is_equal_pair(const Evidence& evidence, const Pivot& pivot) {
  if (pivot.kind != PivotKind::value && pivot.kind != PivotKind::scalar) return false;
  if (pivot.a.process < 0 || pivot.b.process < 0 ||
      evidence.boundary(0, pivot.a) != evidence.boundary(1, pivot.b))
    return false;
  return compare_events(evidence.log(0, pivot.a), evidence.event(0, pivot.a),
                        evidence.log(1, pivot.b), evidence.event(1, pivot.b)) == Equality::equal;
}

}  // namespace

void add(const Evidence& evidence, Pivot pivot, std::vector<Pivot>& candidates) {
  if (candidates.size() >= kMostCandidates || is_equal_pair(evidence, pivot)) return;
  for (const Pivot& earlier : candidates)
    if (same_place(evidence, earlier, pivot)) return;
  candidates.push_back(std::move(pivot));
}

Pivot name(const Evidence& evidence, const Blame& blame, const Lead& lead,
           const std::vector<Lead>& leads) {
  EventRef refs[2] = {lead.refs[0], lead.refs[1]};
  std::array<std::vector<EventRef>, 2> region = lead.steps;
  const int side = lead.found.side;
  if (refs[1 - side].process < 0 && !lead.found.origin.hole)
    for (const Lead& other : leads)
      if (other.region && other.found.side != side && other.refs[side].process < 0 &&
          other.grade <= lead.grade && same_gap(evidence, lead.found, other.found)) {
        refs[1 - side] = other.refs[1 - side];
        if (region[1 - side].empty()) region[1 - side] = other.steps[1 - side];
        break;
      }
  const EventRef before[2] = {refs[0], refs[1]};
  Pivot pivot;
  pivot.heuristics = lead.by;
  pivot.kind = blame.settle(refs, lead.found.origin.hole, !lead.one_sided(), pivot.heuristics);
  pivot.a = refs[0];
  pivot.b = refs[1];
  // Named elsewhere than where the walk ended: what stood there is no region of it.
  if (!(refs[0] == before[0] && refs[1] == before[1]))
    for (int side : {0, 1}) {
      region[side].clear();
      if (refs[side].process >= 0) region[side].push_back(refs[side]);
    }
  pivot.slot = telling_slot(evidence, pivot, lead.found);
  pivot.region = std::move(region);
  pivot.why = {why(evidence, blame, pivot)};
  return pivot;
}

Pivot name(const Evidence& evidence, const Blame& blame, const GeneratorWrite& write) {
  Pivot pivot;
  pivot.a = write.refs[0];
  pivot.b = write.refs[1];
  // A generator is an input that no call names.
  pivot.kind = PivotKind::input;
  if (pivot.a.process < 0 || pivot.b.process < 0) {
    pivot.why = {{.kind = ReasonKind::moves_generator, .side = pivot.a.process < 0 ? 1 : 0}};
    return pivot;
  }
  pivot.kind = blame.pair_kind(pivot.a, pivot.b);
  pivot.why = {why(evidence, blame, pivot), {ReasonKind::other_numbers_after}};
  return pivot;
}

}  // namespace opguard
