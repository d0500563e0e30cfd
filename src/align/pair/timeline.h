// align/pair/timeline.h: one order for the events of two aligned runs.
//
//   run a    embed  norm         linear        positions of a: 0, 2, 4
//   run b    embed  norm  scale  linear        scale is b's alone: behind norm, between 2 and 4
//
// "Which came first?" is asked across sides and across ranks. Across sides the pairs answer it.
// Across ranks the collectives do, by their epochs (collectives.h). What ran side by side is
// ordered by micro-batch and by the distance from the collective before.
//
// Counterexample: clocks. Two runs have two, and so have two machines.
//
// The cost: 8 bytes an event of b. The ranks' order is made when first asked for, since runs that
// agree are put in none.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <vector>

#include "align/pair/alignment.h"
#include "align/pair/collectives.h"
#include "align/pair/run.h"
#include "record/event_ref.h"

namespace opguard {

// Where an event stands. In one process it is as its events completed. In another rank of the job
// it is behind what is known to have run before it (Collectives::epoch). What ran side by side is
// ordered by micro-batch and by the distance from the collective before it. Across sides it is
// through pairs: all but the step are of side a. An event of b without a partner stands behind the
// pair before it.
struct Position {
  uint32_t ordinal = 0;  // which of its rank's processes
  uint32_t step = 0;     // as both runs count in common: StepPairs::number
  uint32_t epoch = 0;
  uint32_t micro_batch = 0;  // never decreases within a step of a process
  uint64_t distance = 0;     // twice the events since the epoch began; odd between two
  int32_t process = 0;
  uint32_t unpaired = 0;  // event of b without a partner: 1 + its index
  uint64_t at = 0;        // twice the index in side a's events, odd between two
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

  // The step it is of, as both runs count in common: StepPairs::number.
  uint32_t step(int side, const EventRef& ref) const;
  // Of a step that the other run does not make (ProcessPair::besides_a), and without a partner.
  bool besides(int side, const EventRef& ref) const;
  // Which steps of a process are the other run's.
  const StepPairs& steps(int side, int32_t process) const;

 private:
  // Made when first asked for: runs that agree are put in no order.
  struct Order {
    Collectives collectives;                         // of a side
    std::vector<std::vector<uint32_t>> micro_batch;  // by process and event
    explicit Order(const Run& run);
  };
  const Order& order(int side) const;

  struct Partners {
    int32_t process = -1;
    std::vector<uint32_t> events;
    const ProcessPair* both = nullptr;
  };

  const Run* runs_[2];
  const Alignment& alignment_;
  std::vector<Partners> partners_[2];      // by process
  std::vector<uint32_t> ordinals_[2];      // by process
  std::vector<std::vector<uint64_t>> at_;  // side b: position in a of each event
  mutable std::unique_ptr<Order> orders_[2];
};

}  // namespace opguard
