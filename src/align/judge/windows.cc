// A window's first step is one whose predecessor the log does not hold. The optimizer's event in it
// lists what it found, by name.
//
//   step 100   a  param:w 9f31         b  param:w 5d02        differs, and was so as the step began
//   step 100   a  param:v 77aa         b  param:v 0b6f        read before as 1c1c in both: the step
//                                                             wrote it, so it does not count
//
// A pivot before the window's step stays: a log may have several windows.
#include "align/judge/windows.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "align/pair/steps.h"

namespace opguard {
namespace {

// A step that begins where the one before it was not recorded.
struct Beginning {
  uint32_t step[2] = {0, 0};
  uint64_t differing = 0, tensors = 0;
  std::string first;
};

using Values = std::map<std::string_view, Slot>;  // by name

Values found_by(const ProcessLog& log, const Event& optimizer) {
  Values values;
  const EventSlots slots = log.slots_of(optimizer);
  for (const Slot& slot : slots) {
    const std::string_view name = log.text(slot.name);
    if (slot.kind == SlotKind::in && !(slot.flags & kUnreadable) &&
        (name.starts_with("param:") || name.starts_with("state:")))
      values.emplace(name, slot);
  }
  return values;
}

// Was it there as its step began? The first reading of its memory in the step says so; where nobody
// read it before the optimizer, that one did.
bool held_at_beginning(const ProcessLog& log, uint32_t optimizer, const Slot& found) {
  if (found.storage == 0) return true;
  const uint32_t step = log.events.step(optimizer);
  uint32_t first = optimizer;
  while (first > 0 && log.events.step(first - 1) == step) --first;
  for (uint32_t e = first; e < optimizer; ++e) {
    const EventSlots slots = log.slots_of(log.events[e]);
    for (const Slot& slot : slots)
      if (slot.storage == found.storage && slot.address == found.address &&
          slot.size_bytes == found.size_bytes && !(slot.flags & kUnreadable))
        return slot.flat == found.flat;
  }
  return true;
}

bool begins(const ProcessLog& log, uint32_t step) {
  return step > 0 && !window_of(log).holds(step - 1);
}

std::optional<Beginning> first_apart(const Run& a, const Run& b, const ProcessPair& both) {
  const ProcessLog &log_a = a.processes[both.a], &log_b = b.processes[both.b];
  for (const Pair& pair : both.pairs) {
    if (pair.equality == Equality::equal || log_a.events.kind(pair.a) != EventKind::optimizer)
      continue;
    Beginning found;
    found.step[0] = log_a.events.step(pair.a);
    found.step[1] = log_b.events.step(pair.b);
    if (!begins(log_a, found.step[0]) && !begins(log_b, found.step[1])) continue;
    const Values of_a = found_by(log_a, log_a.events[pair.a]),
                 of_b = found_by(log_b, log_b.events[pair.b]);
    for (const auto& [name, slot] : of_a) {
      auto other = of_b.find(name);
      if (other == of_b.end()) continue;
      ++found.tensors;
      if (slot.value == other->second.value || !held_at_beginning(log_a, pair.a, slot) ||
          !held_at_beginning(log_b, pair.b, other->second))
        continue;
      if (found.differing++ == 0) found.first = name;
    }
    if (found.differing > 0) return found;
  }
  return {};
}

// Of the operator that is named, of the same process; kNone: none is.
uint32_t step_of_pivot(const Run& a, const Run& b, const Verdict& verdict, int& side) {
  if (verdict.candidates.empty()) return kNone;
  const Pivot& pivot = verdict.candidates[0];
  side = pivot.a.process >= 0 ? 0 : 1;
  const EventRef& at = side == 0 ? pivot.a : pivot.b;
  if (at.process < 0) return kNone;
  return (side == 0 ? a : b).processes[at.process].events.step(at.event);
}

}  // namespace

Verdict limit_by_windows(Verdict verdict, const Run& a, const Run& b, const Alignment& alignment) {
  for (int side : {0, 1}) {
    const Run& run = side == 0 ? a : b;
    if (run.processes.empty()) continue;
    const StepWindow window = window_of(run.processes[0]);
    if (!window.all())
      verdict.notes.push_back(
          {{.kind = ReasonKind::window, .side = side, .names = {window_text(window)}}});
  }
  if (verdict.outcome != Outcome::diverged) return verdict;
  int side = 0;
  const uint32_t pivot = step_of_pivot(a, b, verdict, side);
  for (const ProcessPair& both : alignment.processes) {
    if (both.a < 0 || both.b < 0) continue;
    const auto apart = first_apart(a, b, both);
    if (!apart || pivot < apart->step[side]) continue;
    verdict.candidates.clear();
    verdict.ranks.clear();
    verdict.why = {{.kind = ReasonKind::apart_at_window,
                    .numbers = {apart->step[0], apart->differing, apart->tensors},
                    .names = {apart->first}},
                   {ReasonKind::cause_unrecorded}};
    break;
  }
  return verdict;
}

}  // namespace opguard
