// align/timeline.h: one order for the events of two aligned runs.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "align/verdict.h"

namespace opguard {

// Where an event stands: comparable across the processes of one side and, through pairs, across
// sides.
struct Position {
  uint32_t ordinal = 0;  // which of its rank's processes
  uint32_t step = 0;
  uint64_t at = 0;  // twice the index in side a's events, odd between two
  int32_t process = 0;
  auto operator<=>(const Position&) const = default;
};

// Sides are 0 (a) and 1 (b).
class Timeline {
 public:
  Timeline(const Run& a, const Run& b, const Alignment& alignment);

  const Run& run(int side) const { return *runs_[side]; }
  const Alignment& alignment() const { return alignment_; }
  const ProcessLog& log(int side, const EventRef& ref) const {
    return runs_[side]->processes[ref.process];
  }
  Event event(int side, const EventRef& ref) const { return log(side, ref).events[ref.event]; }

  // The event paired with this one, {} if it has none.
  EventRef partner(int side, const EventRef& ref) const;
  Position position(int side, const EventRef& ref) const;

 private:
  struct Partners {
    int32_t process = -1;
    std::vector<uint32_t> events;
  };

  const Run* runs_[2];
  const Alignment& alignment_;
  std::vector<Partners> partners_[2];      // by process
  std::vector<uint32_t> ordinals_[2];      // by process
  std::vector<std::vector<uint64_t>> at_;  // side b: position in a of each event
};

}  // namespace opguard
