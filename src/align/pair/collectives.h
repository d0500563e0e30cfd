// align/pair/collectives.h: which events of a run's ranks are the same collective, and their order.
//
//   rank 0   a  b  all_reduce(#1)  c          epoch 0: a, b, x; epoch 1: c, y, z
//   rank 1   x     all_reduce(#1)  y  z       b ran before y for certain; b and x side by side
//
// Clocks of two machines cannot be compared, but a collective can: no member leaves it before all
// have entered. So an epoch is a Lamport clock that each collective moves on. Members are found by
// group and number in the group; a job started again counts anew, so the process's ordinal is part
// of it.
//
// Counterexample: the sender of a message waits for nobody, so its epoch does not move. Where a
// member's log lacks the collective, whoever is furthest behind goes on without it.
// docs/design/collectives.md has the rest. The cost: one pass over the events, and a few words a
// collective.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "record/event_ref.h"
#include "record/record.h"

namespace opguard {

// One collective: the same group and sequence on every member. Logs without numbers are matched by
// boundary and occurrence.
class Collectives {
 public:
  explicit Collectives(const Run& run);

  // Events of other ranks that gave inputs to the collective of `ref`, which may be where it was
  // launched or where it was done. By process; empty if it is none, or of unknown number.
  std::vector<EventRef> peers(const EventRef& ref) const;

  // Lamport's clock: an event of one rank that is known to have run before one of another rank has
  // a lower epoch. Events of one epoch on two ranks ran side by side.
  uint32_t epoch(const EventRef& ref) const;
  // The first event of its process in that epoch.
  uint32_t epoch_begin(const EventRef& ref) const;

 private:
  struct Member {
    int32_t process;
    uint32_t launched, done;  // events; one event where it blocks
    bool waits;               // false: a message's sender
  };
  struct Collective {
    std::vector<Member> members;  // by process
  };
  struct Step {  // of a process: from this event on its epoch is this one
    uint32_t event, epoch;
  };

  void match(const Run& run);
  void order(const Run& run);
  const Step& step(const EventRef& ref) const;

  std::vector<Collective> all_;
  std::vector<std::unordered_map<uint32_t, uint32_t>> at_;  // by process: event -> index in all_
  std::vector<std::vector<Step>> steps_;                    // by process, by event
};

}  // namespace opguard
