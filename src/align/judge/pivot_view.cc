// What a report says of an event is in its log's locations. Without a place the boundary stands in:
// "rope.mul:q7k2" is shown as operator rope.mul. A pivot that is named at a call or a text shows
// that place, and keeps the operator's own as `inner`.
#include "align/judge/pivot_view.h"

#include <algorithm>
#include <utility>

namespace opguard {

EventView view(const ProcessLog& log, uint32_t index) {
  EventView result;
  result.log = &log;
  result.event = log.events[index];
  result.index = index;
  result.boundary = log.text(result.event->boundary);
  if (auto at = log.locations.find(result.boundary); at != log.locations.end())
    result.location = at->second;
  // "rope.mul:q7k2" -> "rope.mul"
  result.operator_name = result.location.callee.empty()
                             ? result.boundary.substr(0, result.boundary.rfind(':'))
                             : result.location.callee;
  return result;
}

EventView view(const Run& run, const EventRef& ref) {
  if (ref.process < 0 || ref.event == kNone) return {};
  return view(run.processes[ref.process], ref.event);
}

PivotView view(const Run& a, const Run& b, const Pivot& pivot) {
  PivotView result;
  result.a = view(a, pivot.a);
  result.b = view(b, pivot.b);
  for (int side : {0, 1}) {
    EventView& shown = side == 0 ? result.a : result.b;
    if (pivot.text[side]) {
      shown.inner = std::exchange(shown.location, *pivot.text[side]);
      shown.at_text = true;
    } else if (pivot.call[side] && shown) {
      shown.inner = std::exchange(shown.location, *pivot.call[side]);
    }
  }
  const EventView& owner = result.b ? result.b : result.a;
  if (pivot.slot != kNone && owner && pivot.slot < owner.log->slots.size())
    result.slot = owner.log->text(owner.log->slots[pivot.slot].name);
  result.comparable = result.a && result.b && result.a.boundary == result.b.boundary &&
                      result.a.event->kind == result.b.event->kind;
  return result;
}

EventView same_boundary(const Run& run, const EventView& lacked) {
  const auto far = [&](const Event& event) {
    auto apart = [](uint32_t x, uint32_t y) { return x < y ? y - x : x - y; };
    return std::pair(apart(event.step, lacked.event->step),
                     apart(event.micro_batch, lacked.event->micro_batch));
  };
  EventView nearest;
  for (const ProcessLog& log : run.processes) {
    if (log.rank != lacked.log->rank) continue;
    const auto text = std::find(log.strings.begin(), log.strings.end(), lacked.boundary);
    if (text == log.strings.end()) continue;
    const auto boundary = static_cast<uint32_t>(text - log.strings.begin());
    for (uint32_t i = 0; i < log.events.size(); ++i) {
      const Event event = log.events[i];
      // Steps do not go back: what follows is farther.
      if (nearest && event.step > lacked.event->step &&
          far(event).first > far(*nearest.event).first)
        break;
      if (event.boundary == boundary && event.kind == lacked.event->kind &&
          (!nearest || far(event) < far(*nearest.event)))
        nearest = view(log, i);
    }
  }
  return nearest;
}

const char* kind_name(PivotKind kind) {
  switch (kind) {
    case PivotKind::value:
      return "value";
    case PivotKind::scalar:
      return "scalar";
    case PivotKind::structure:
      return "structure";
    case PivotKind::input:
      return "input";
    case PivotKind::race:
      return "race";
    case PivotKind::missing_reduce:
      return "missing_reduce";
    case PivotKind::scale:
      return "scale";
    case PivotKind::layout:
      return "layout";
    case PivotKind::omits:
      return "omits";
    case PivotKind::replicas:
      return "replicas";
    case PivotKind::stale:
      return "stale";
    case PivotKind::mapping:
      return "mapping";
    case PivotKind::precision:
      return "precision";
    case PivotKind::declared:
      return "declared";
  }
  return "";
}

const char* phase_name(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::recompute:
      return "recompute";
    case Phase::backward:
      return "backward";
    case Phase::optimizer:
      return "optimizer";
  }
  return "";
}

const char* kind_name(EventKind kind) {
  switch (kind) {
    case EventKind::op:
      return "op";
    case EventKind::node:
      return "node";
    case EventKind::accumulate:
      return "accumulate";
    case EventKind::loss:
      return "loss";
    case EventKind::optimizer:
      return "optimizer";
    case EventKind::collective:
      return "collective";
    case EventKind::state:
      return "state";
  }
  return "";
}

const char* outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::identical:
      return "identical";
    case Outcome::diverged:
      return "diverged";
    case Outcome::inconclusive:
      return "inconclusive";
    case Outcome::equivalent:
      return "equivalent";
  }
  return "";
}

std::string place(const EventView& event) {
  const Location& at = event.location;
  if (at.file.empty()) return event.boundary;
  return at.file + ":" + std::to_string(at.line);
}

}  // namespace opguard
