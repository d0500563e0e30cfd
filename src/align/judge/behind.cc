// Each look_ function asks for one pattern in front of the first candidate, and puts what it finds
// before it. Where the pattern is not there, the candidates come back as they were.
//
//   look_behind_hole   it reads what nobody made         what was made last in the step, and no
//                                                        operator read? b is asked first
//   look_behind_sum    it reads what autograd summed     three summands or more, in another order
//   look_behind_draw   a draw with other numbers         generator_write() names the writer
//
// behind_named walks again and again. Each time the one-sided operators that were named count as
// harmless, so the walk goes through them to what is behind. It ends when a walk names none that is
// new, or six candidates are there.
//
// The cost: each round of behind_named walks both sides, and adds one harmless boundary at least.
#include "align/judge/behind.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include "align/judge/gradient_sums.h"
#include "align/judge/random_state.h"

namespace opguard {
namespace {

// The last value made before `hole` in its step that only this run holds and no operator read up to
// there.
SlotRef last_unread(const Evidence& evidence, int side, const EventRef& hole, const Flow& flow) {
  const ProcessLog& l = evidence.log(side, hole);
  std::unordered_set<ValueKey, ValueKeyHash> read;
  for (uint32_t i = hole.event + 1; i-- > 0;) {
    const Event e = l.events[i];
    if (e.step != evidence.event(side, hole).step) break;
    const EventSlots slots = l.slots_of(e);
    for (const Slot& slot : slots) {
      const ValueKey key = value_key(l, slot);
      if (slot.kind == SlotKind::in) read.insert(key);
      if (slot.kind == SlotKind::in || i == hole.event || read.contains(key)) continue;
      const EventRef ref{hole.process, i};
      if (l.metas[slot.meta].dtype != "bool" && flow.novel(ref, slot))
        return {ref, slots.index_of(slot)};
    }
  }
  return {};
}

// The first event behind the hidden value, on the walk's way, that reads it. Of a hole any event on
// the way stands for it, and where there is none the model value itself.
EventRef first_reader(const Evidence& evidence, const Walk& walk, const Found& hidden,
                      const ModelDifference& difference) {
  const ProcessLog& l = evidence.log(hidden.side, hidden.origin.event);
  const ValueKey key = value_key(l, l.slots[hidden.origin.slot]);
  for (uint32_t i = hidden.origin.event.event + 1; i < l.events.size(); ++i) {
    const EventRef ref{hidden.origin.event.process, i};
    if (!walk.visited[hidden.side].contains(Flow::id(ref))) continue;
    const Event e = l.events[i];
    for (const Slot& slot : l.slots_of(e))
      if (hidden.origin.hole || (slot.kind == SlotKind::in && value_key(l, slot) == key))
        return ref;
  }
  const auto& sinks = difference.slots[hidden.side];
  return sinks.empty() ? hidden.origin.event : sinks.front().event;
}

bool draws(const Evidence& evidence, const Pivot& pivot) {
  return pivot.a.process >= 0 && pivot.b.process >= 0 &&
         (evidence.draws(0, pivot.a) || evidence.draws(1, pivot.b));
}

}  // namespace

std::vector<Pivot> look_behind_hole(const Evidence& evidence, const Blame& blame,
                                    std::vector<Pivot> candidates) {
  if (!evidence.on(Heuristic::behind_hole) || candidates.empty() ||
      candidates[0].kind != PivotKind::input)
    return candidates;
  const EventRef holes[2] = {candidates[0].a, candidates[0].b};
  for (int side : {1, 0}) {
    if (holes[side].process < 0) continue;
    Flow flow(*evidence.index[side], *evidence.index[1 - side], flow_options(evidence, side, {}));
    const SlotRef gone = last_unread(evidence, side, holes[side], flow);
    if (gone.event.process < 0) continue;
    for (const Origin& origin : flow.origins({gone})) {
      EventRef refs[2];
      refs[side] = origin.event;
      refs[1 - side] = evidence.partner(side, origin.event);
      if (origin.hole || refs[1 - side].process < 0) continue;
      Pivot pivot{blame.pair_kind(refs[0], refs[1]), refs[0], refs[1], kNone};
      if (pivot.kind != PivotKind::scalar && pivot.kind != PivotKind::value) continue;
      pivot.heuristics.add(Heuristic::behind_hole);
      pivot.why = {why(evidence, blame, pivot), {ReasonKind::went_on_unrecorded}};
      candidates.insert(candidates.begin(), std::move(pivot));
      if (candidates.size() > kMostCandidates) candidates.pop_back();
      return candidates;
    }
  }
  return candidates;
}

std::vector<Pivot> look_behind_sum(const Evidence& evidence, std::vector<Pivot> candidates) {
  if (candidates.empty() || candidates[0].kind != PivotKind::input) return candidates;
  const auto order = find_gradient_order(evidence.timeline, candidates[0].a, candidates[0].b);
  if (!order) return candidates;
  Pivot pivot;
  pivot.kind = PivotKind::input;
  pivot.a = order->refs[0];
  pivot.b = order->refs[1];
  pivot.shown = {candidates[0].a, candidates[0].b};
  pivot.shown_as = PivotKind::input;
  pivot.why = {{.kind = ReasonKind::summed_in_other_order, .numbers = {order->count}}};
  candidates.insert(candidates.begin(), std::move(pivot));
  if (candidates.size() > kMostCandidates) candidates.pop_back();
  return candidates;
}

std::vector<Pivot> look_behind_draw(const Evidence& evidence, const Blame& blame,
                                    std::vector<Pivot> candidates) {
  if (candidates.empty() || candidates[0].kind != PivotKind::value ||
      !draws(evidence, candidates[0]))
    return candidates;
  const auto write = generator_write(evidence, candidates[0].a, candidates[0].b);
  if (!write) return candidates;
  Pivot moved = name(evidence, blame, *write);
  moved.shown[0] = candidates[0].a;
  moved.shown[1] = candidates[0].b;
  candidates.insert(candidates.begin(), std::move(moved));
  if (candidates.size() > kMostCandidates) candidates.pop_back();
  return candidates;
}

std::vector<Pivot> behind_named(const Evidence& evidence, const Blame& blame,
                                const ModelDifference& difference, const std::vector<Lead>& leads,
                                std::vector<Pivot> candidates) {
  Known known;
  std::vector<Lead> named = leads;
  while (candidates.size() < kMostCandidates) {
    const size_t before = known.harmless[0].size() + known.harmless[1].size();
    for (const Lead& lead : named)
      if (lead.one_sided() && !lead.found.origin.hole)
        for (int side : {0, 1})
          if (lead.refs[side].process >= 0)
            known.harmless[side].insert(evidence.boundary(side, lead.refs[side]));
    if (known.harmless[0].size() + known.harmless[1].size() == before) break;
    named = order_leads(evidence, walk_back(evidence, difference, known));
    for (const Lead& lead : named)
      if (lead.grade != Grade::echo) add(evidence, name(evidence, blame, lead, named), candidates);
  }
  return candidates;
}

void tell_random_states(const Evidence& evidence, Pivot& pivot) {
  if (pivot.kind == PivotKind::value ? !draws(evidence, pivot) : pivot.kind != PivotKind::input)
    return;
  if (pivot.b.process >= 0 && evidence.given_generator(1, pivot.b)) return;  // no record's
  const Reasons states =
      random_state_difference(evidence.timeline.run(0), pivot.a, evidence.timeline.run(1), pivot.b);
  pivot.why.insert(pivot.why.end(), states.begin(), states.end());
}

void tell_hidden(const Evidence& evidence, const Walk& walk, const ModelDifference& difference,
                 Verdict& verdict) {
  if (walk.hidden.empty()) return;
  const auto& [found, rule] = *std::min_element(
      walk.hidden.begin(), walk.hidden.end(),
      [](const auto& x, const auto& y) { return x.first.position < y.first.position; });
  if (!verdict.candidates.empty()) {
    verdict.notes.push_back(
        {{.kind = ReasonKind::hidden_reaches, .names = {rule->text, rule->why}}});
    return;
  }
  EventRef refs[2];
  refs[found.side] = first_reader(evidence, walk, found, difference);
  refs[1 - found.side] = evidence.partner(found.side, refs[found.side]);
  Pivot pivot{PivotKind::input, refs[0], refs[1], kNone};
  pivot.why = {{.kind = ReasonKind::reads_hidden, .names = {rule->text, rule->why}}};
  verdict.candidates.push_back(std::move(pivot));
}

}  // namespace opguard
