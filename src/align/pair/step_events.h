// align/pair/step_events.h: the events of one run, numbered by the steps it has in common with
// another.
//
//   a   setup, step 0, 1, 2, 3, ...    a takes part with: setup, step 3, ...
//   b   setup, load, step 0, ...       b's step 0 is a's step 3
//
// A run that begins with steps of its own has set itself up before, as the other one has. Setup is
// what its first step does and no later one does again. It counts as part of the first step in
// common, as the other run's setup does.
#pragma once

#include <cstdint>
#include <vector>

#include "align/pair/alignment.h"

namespace opguard {

class StepEvents {
 public:
  // Both must stay.
  StepEvents(const ProcessLog& log, const StepPairs& steps, int side);

  bool takes_part(uint32_t event) const { return occurrences_.empty() || occurrences_[event] > 0; }
  uint32_t step(uint32_t event) const;
  // With the step's number in common, and occurrences counted among those that take part.
  Event event(uint32_t event) const;

  // Takes from `only` (increasing) the events of steps that the other run does not make. It also
  // takes what is left of such a step behind its optimizer's: logging, an average of weights.
  std::vector<uint32_t> take_besides(const std::vector<Pair>& pairs, uint32_t Pair::* side,
                                     std::vector<uint32_t>& only) const;

 private:
  const ProcessLog& log_;
  const StepPairs& steps_;
  int side_;
  uint32_t first_ = 0;                 // the first step in common, by its common number
  std::vector<uint32_t> occurrences_;  // by event: 1 + its occurrence, 0 takes no part; empty: as
                                       // in the log
};

}  // namespace opguard
