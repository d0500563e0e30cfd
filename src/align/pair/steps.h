// align/pair/steps.h: which training steps of two runs are the same step.
//
// A run that goes on from a checkpoint counts its steps from 0 again:
//
//   a   0 1 2 3 4 5 6      uninterrupted
//   b         0 1 2 3      loads what a had before its step 3
//
// What tells is state, as each optimizer step finds it: b's first step finds the parameters that
// a's step 3 found. A fault may have changed some of it: no optimizer state, weights rounded on
// their way. Then the step of a that found most of the same tensors is meant. Parameters, moments
// and the optimizer's own count vote alike. A value that recurs in a run, as under a rate of zero,
// tells nothing. Counterexample: two runs of other seeds share no state; their steps are those of
// the same number. Time and memory are linear in what the optimizers' events hold.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "record/record.h"
#include "record/step_window.h"

namespace opguard {

// Steps a, a + 1, ... of run a are steps b, b + 1, ... of run b.
struct StepStretch {
  uint32_t a = 0, b = 0;
  uint32_t count = kNone;  // kNone: as far as the runs go
  bool operator==(const StepStretch&) const = default;
};

// Of one process of each run. By default steps are the same if their numbers are.
class StepPairs {
 public:
  StepPairs() = default;
  // Increasing on both sides; only the last one may be without an end. windowed: a log has no
  // records of the steps between them. Its run may have made them all the same.
  explicit StepPairs(std::vector<StepStretch> stretches, bool windowed = false);

  bool by_number() const { return stretches_.empty(); }
  bool windowed() const { return windowed_; }
  const std::vector<StepStretch>& stretches() const { return stretches_; }

  // Sides are 0 (a) and 1 (b). A number that a step has in common with its counterpart, and that
  // increases with the steps of either run. Of a step without one it is just below the next that
  // has.
  uint32_t number(int side, uint32_t step) const;
  // The step that has this number; of a number that only the other run's steps have, the next.
  uint32_t step(int side, uint32_t number) const;
  // The other run has no such step.
  bool besides(int side, uint32_t step) const;

  bool operator==(const StepPairs&) const = default;

 private:
  static uint32_t begin(int side, const StepStretch& s) { return side == 0 ? s.a : s.b; }
  // The last stretch that begins at `step` or before it; stretches_.size(): none.
  size_t at(int side, uint32_t step) const;

  std::vector<StepStretch> stretches_;
  bool windowed_ = false;
  std::vector<uint32_t> numbers_;  // of the first step of each stretch
};

// One process of each run, or one of each rank: processes of one job go step by step together.
struct SteppingProcesses {
  std::vector<const ProcessLog*> a, b;  // as many of each, those of one rank at one place
};

// Which steps a log has, by its setting `steps`.
StepWindow window_of(const ProcessLog& log);

// Both windows: a log says so of itself. False also where no step is recorded in both runs.
bool have_common_steps(const Run& a, const Run& b);

// By number where nothing else is known. Only steps that both logs have.
StepPairs pair_steps(const SteppingProcesses& processes);

}  // namespace opguard
