// What of the judged step differs now, and in which order that is asked:
//
//   the first that differs comes before the one of the first comparison    unchanged
//   it is that one                                                         unchanged
//   it comes behind it, in the judged step                                 changed
//   nothing, or in a later step alone                                      healed
//   the same, but the pivot's operator does something else                 changed
//
// Counterexample: a re-run that did not come to the value, or compared none. Then nothing is known.
#include "confirm/exchanged.h"

#include "align/pair/difference.h"

namespace opguard {

namespace {

bool does_the_same(const Timeline& timeline, const EventRef& a) {
  if (a.process < 0) return true;
  const EventRef b = timeline.partner(0, a);
  return b.process >= 0 &&
         compare_events(timeline.log(0, a), timeline.event(0, a), timeline.log(1, b),
                        timeline.event(1, b)) == Equality::equal;
}

}  // namespace

Outcomes judge_exchanged(const Comparands& first, const Pivot& pivot, const Run& again) {
  const Alignment alignment = align_runs(first.a, again, {});
  const Timeline timeline(first.a, again, alignment);
  const ValueIndex index_a(first.a), index_again(again);
  const ModelComparison found =
      compare_model_values(index_a, index_again, timeline, HiddenRecords({}, first.a, again));
  const Position& before = first.difference.position;
  const bool later = found.first && (found.first->position.step > before.step ||
                                     (first.cut && found.first->longer >= 0));
  Outcomes out;
  if (found.first && !later) {
    out.effect = before < found.first->position ? Effect::changed : Effect::unchanged;
    return out;
  }
  const auto& slots = first.difference.slots[0];
  if (!found.compared || !found.uncompared.empty() ||
      (!slots.empty() && timeline.partner(0, slots.front().event).process < 0)) {
    out.obstacle.kind = Hindrance::not_reached;
    return out;
  }
  if (!does_the_same(timeline, pivot.a)) {
    out.effect = Effect::changed;
    return out;
  }
  out.effect = Effect::healed;
  if (first.cut) out.until = first.timeline.steps(1, 0).step(1, before.step);
  return out;
}

}  // namespace opguard
