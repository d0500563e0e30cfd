// align/pair/step_states.h: what the optimizers of a run find at each of its steps.
#pragma once

#include <cstdint>
#include <vector>

#include "record/record.h"

namespace opguard {

// By step, of all processes of a job together. Digests; 0: the step has no optimizer, or none was
// read.
struct StepStates {
  std::vector<uint64_t> found;  // the parameters, by name, as the step finds them; one more than
                                // there are steps: as one behind the last would
  std::vector<uint64_t> left;   // and as it leaves them
  uint32_t first = kNone;       // the first step that has any; kNone: there is none
  bool restored = false;        // and that step finds the optimizer's state there already

  // The step finds what the one before it left: nothing was loaded in between.
  bool goes_on(uint32_t step) const {
    return step > 0 && step < found.size() && found[step] != 0 && found[step] == left[step - 1];
  }
};

StepStates step_states(const std::vector<const ProcessLog*>& processes);

// How many of one run's first tensors (parameters, optimizer state, its count) a step of the other
// run finds by the same name. No other step of that run finds them. The step behind the last one
// finds what that leaves.
struct StepVotes {
  uint32_t step = kNone;   // the one that most vote for
  uint32_t most = 0;       // so many
  uint32_t for_first = 0;  // for the first step of that run
};
StepVotes votes_for(const std::vector<const ProcessLog*>& processes, const StepStates& states,
                    const std::vector<const ProcessLog*>& others, const StepStates& other_states);

}  // namespace opguard
