// align/judge/pivot_view.h: a pivot's two events with everything a report says of them looked up.
#pragma once

#include <optional>
#include <string>

#include "align/judge/verdict.h"
#include "record/record.h"

namespace opguard {

// One side of a pivot; `event` is nullptr where that side has none.
struct EventView {
  const ProcessLog* log = nullptr;
  std::optional<Event> event;
  uint32_t index = kNone;  // of the event in its log
  std::string boundary;
  Location location;          // empty if the boundary's place is unknown
  Location inner;             // a pivot named at a call or a text: of the operator itself
  bool at_text = false;       // named at a text (Pivot::text); `event` may be none then
  std::string operator_name;  // Location::callee, else the boundary's label

  explicit operator bool() const { return event.has_value(); }
};

EventView view(const Run& run, const EventRef& ref);
EventView view(const ProcessLog& log, uint32_t event);

struct PivotView {
  EventView a, b;
  std::string slot;  // name of the pivot's slot, "" if it names none
  // Both sides ran the same boundary: their slots can be compared one by one.
  bool comparable = false;

  const EventView& either() const { return a ? a : b; }
};

PivotView view(const Run& a, const Run& b, const Pivot& pivot);

// Where a run that lacks this operator has the same boundary: it was moved, or runs another number
// of times. Of its rank, the event nearest by step and micro-batch. None: nowhere. One pass over
// the rank's log.
//   b clips in every micro-batch, a after the last: a's clip is an operator that b's first lacks
EventView same_boundary(const Run& run, const EventView& lacked);

const char* kind_name(PivotKind kind);
const char* phase_name(Phase phase);
const char* kind_name(EventKind kind);
const char* outcome_name(Outcome outcome);

// "model/rope.py:15", or the boundary id where no place is known.
std::string place(const EventView& event);

}  // namespace opguard
