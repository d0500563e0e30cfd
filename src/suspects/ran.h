// suspects/ran.h: what of a side's sources had run when a certain event began.
//
// A log knows where operators ran. What computes no tensor leaves no event (`get_lr(it)`). A module
// ran when it was loaded, a function ran if an operator in it did, or if code that ran names it.
// Names stand for calls here: a function that is named and never called counts as one that ran. One
// that nobody names does not.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "record/event_ref.h"
#include "record/record.h"
#include "suspects/code.h"

namespace opguard {

// Calls of the run that may have led to an event. They are those into its function, into the
// functions that made these, and so on outward, the nearest first.
std::vector<const FunctionCall*> calls_to(const Run& run, const EventRef& event);

class Ran {
 public:
  // Events of `run` that began before `until` or are it; of other processes those of its step and
  // before.
  Ran(const Code& code, const Run& run, const EventRef& until);

  // The body of a scope ran.
  bool scope(uint32_t file, uint32_t scope) const { return scopes_[file][scope]; }

  // The code in these lines ran. Where an operator in them or around them is recorded at all, the
  // log alone decides.
  bool lines(uint32_t file, const LineSpan& lines) const;

  // The last event in these lines, counted from 1 in its process; 0: none.
  uint64_t last_event(uint32_t file, const LineSpan& lines) const;

 private:
  // Where a boundary of the log stands, or a call that has begun.
  struct Place {
    LineSpan lines;
    uint64_t last = 0;  // 0: it did not run until then
  };
  void read_events(const Code& code, const Run& run, const EventRef& until);
  void read_calls(const Code& code, const Run& run, const EventRef& until);
  void follow_names();
  bool block_ran(uint32_t file, const LineSpan& lines, bool& known) const;

  const Code& code_;
  std::vector<std::vector<Place>> places_;  // by file: its boundaries
  std::vector<std::vector<bool>> scopes_;   // by file and scope
};

}  // namespace opguard
