// align/values/same_values.h: whether two runs of one program held the same model values, bit for
// bit, in the same order. Nothing is aligned: a program and its instrumented copy do the same
// steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "record/record.h"

namespace opguard {

struct ValueDifference {
  int32_t rank = 0;
  uint32_t step = 0, micro_batch = 0;
  std::string what;  // "loss", "gradient", "parameter", "optimizer state", "hyperparameters",
                     // "number of model values"
  std::string name;  // "root0", "grad3"; "" where nothing single differs
  Location place;    // of the backward pass or the optimizer step, in `a` where it has one
  std::string a, b;  // "float32[2, 8] 00ab..:77cd..", or what there is instead
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
