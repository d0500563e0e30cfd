// align/values/same_values.h: whether two runs of one program held the same model values, bit for
// bit, in the same order.
//
//   bare            loss 2.31   gradients, parameters of step 0   loss 1.97   ...   moment
//   instrumented    loss 2.31   gradients, parameters of step 0   loss 1.97   ...   by moment
//
// Nothing is aligned: a program and its instrumented copy do the same steps. Counterexample: two
// versions of a program. A step more in one of them would shift all that follows; conclude.h is for
// those.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "record/record.h"

namespace opguard {

enum class ValueKind : uint8_t {
  loss,
  gradient,
  parameter,
  optimizer_state,
  hyperparameters,
  moments,  // where one run has another moment, or more of them
};

// What one run has where they differ.
struct ValueSide {
  // A tensor: its name in this run, what it is and what it held. None: nothing there.
  std::string name = {};
  std::optional<Meta> meta = {};
  Fingerprint value = {};
  std::string hyperparameters = {};      // as recorded: "lr=0.1"
  std::optional<EventKind> moment = {};  // loss: a backward pass; optimizer: a step
  uint64_t moments = 0;                  // in all, where one run has more
  bool operator==(const ValueSide&) const = default;
};

struct ValueDifference {
  int32_t rank = 0;
  uint32_t step = 0, micro_batch = 0;
  ValueKind kind = ValueKind::loss;
  std::string name = {};  // "root0", "grad3"; "" where nothing single differs
  Location place = {};    // of the backward pass or the optimizer step, in `a` where it has one
  ValueSide a = {}, b = {};
  bool operator==(const ValueDifference&) const = default;
};

struct ValueComparison {
  // Compared and equal, of all ranks.
  uint64_t losses = 0, gradients = 0, parameters = 0, states = 0;
  uint64_t steps = 0;                    // optimizer steps, the most of any rank
  uint64_t unreadable = 0;               // no fingerprint on one side at least: not compared
  std::optional<ValueDifference> first;  // of the earliest step, then of the lowest rank

  bool compared() const { return first || losses + gradients + parameters + states > 0; }
  bool operator==(const ValueComparison&) const = default;
};

// Losses at the start of each backward pass; parameters, gradients, state and hyperparameters
// around each optimizer step.
ValueComparison compare_values(const Run& a, const Run& b);

}  // namespace opguard
