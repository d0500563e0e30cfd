#include "confirm/exchanged.h"

#include <utility>

namespace opguard {

Outcomes judge_exchanged(const Comparands& first, const Run& again) {
  const Alignment alignment = align_runs(first.a, again, {});
  const Timeline timeline(first.a, again, alignment);
  const ValueIndex index_a(first.a), index_again(again);
  const Comparison found =
      compare_model_values(index_a, index_again, timeline, HiddenRecords({}, first.a, again));
  const Position& before = first.difference.position;
  const bool later = found.first && (found.first->position.step > before.step ||
                                     (first.cut && found.first->longer >= 0));
  if (found.first && !later) {
    const bool further = before < found.first->position;
    return {further ? Effect::changed : Effect::unchanged,
            further ? "another model value still differs" : "the same model value still differs"};
  }
  if (!found.compared) return {Effect::unknown, "it holds no model values that could be compared"};
  if (!found.uncompared.empty()) return {Effect::unknown, found.uncompared.front()};
  const auto& slots = first.difference.slots[0];
  if (!slots.empty() && timeline.partner(0, slots.front().event).process < 0)
    return {Effect::unknown, "it did not come to the value that differs"};
  const uint32_t step = first.timeline.steps(1, 0).step(1, before.step);
  return {Effect::healed,
          "every model value of run b is run a's" +
              (first.cut ? " to the end of step " + std::to_string(step) : std::string())};
}

}  // namespace opguard
