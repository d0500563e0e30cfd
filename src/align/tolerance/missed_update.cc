// Events of one process, in their order:
//
//   12   <parameters> of the step          `before`: the program read w here
//   40   w.view(-1)[:4].copy_(part)        newer than `before`, and not all of w: a part is missed
//   41   v.add_(g)                         newer, and another parameter's: it missed w
//   60   <parameters> of the next step     w is as it was
//
// A part is looked for first. What wrote the whole of w since then ends the search: nothing was
// missed. For an update that passed w by, some other parameter must be right and written in
// between.
#include "align/tolerance/missed_update.h"

#include <algorithm>

#include "align/values/value_index.h"

namespace opguard {

MissedUpdate missed_update(const Run& candidate, const Comparison& comparison,
                           const ComparedTensor& parameter, const EventRef& maker) {
  const Texts& texts = comparison.texts;
  const auto is_read = [&](const SketchedTensor& tensor) {
    return texts.text(tensor.activity.boundary) == "<parameters>" &&
           texts.text(tensor.slot).starts_with("param:");
  };
  if (!is_read(parameter.a) || maker.process < 0) return {};
  const auto held = std::find_if(parameter.b.begin(), parameter.b.end(), [&](const SlotRef& b) {
    return b.event.process == maker.process;
  });
  if (held == parameter.b.end()) return {};
  EventRef before;  // where the program read it last
  for (const ComparedTensor& other : comparison.tensors)
    if (other.a.slot == parameter.a.slot && is_read(other.a))
      for (const SlotRef& b : other.b)
        if (b.event.process == maker.process && b.event.event < held->event.event &&
            (before.process < 0 || before.event < b.event.event))
          before = b.event;
  if (before.process < 0) return {};
  const ValueIndex values(candidate);
  for (const SlotRef& b : parameter.b) {
    if (b.event.process != maker.process) continue;
    const Memory::Parts written = values.memory().parts(b.event, values.slot(b));
    const auto later = [&](const SlotRef& part) { return part.event.event > before.event; };
    const auto newer = std::find_if(written.left.begin(), written.left.end(), later);
    if (newer != written.left.end() &&
        !(written.complete && std::all_of(written.left.begin(), written.left.end(), later)))
      return {newer->event, true};
  }
  if (maker.event > before.event) return {};
  for (const ComparedTensor& other : comparison.tensors) {
    if (!(other.a.activity == parameter.a.activity) || !is_read(other.a) ||
        other.a.execution != parameter.a.execution || other.state != TensorState::equal)
      continue;
    for (const SlotRef& b : other.b) {
      if (b.event.process != maker.process) continue;
      const SlotRef writer = values.memory().writer(b.event, values.slot(b), /*inclusive=*/false);
      if (writer.event.process >= 0 && writer.event.event > before.event) return {writer.event};
      const auto parts = values.memory().parts(b.event, values.slot(b)).left;
      for (const SlotRef& part : parts)
        if (part.event.event > before.event) return {part.event};
    }
  }
  return {};
}

}  // namespace opguard
