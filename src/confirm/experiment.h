// confirm/experiment.h: which values of run a to put into run b, to see whether a candidate is the
// cause: docs/confirm.md.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "align/model_values.h"
#include "align/timeline.h"
#include "align/value_index.h"
#include "align/verdict.h"

namespace opguard {

// A slot of run b that gets the bytes of one of run a's.
struct Put {
  EventRef a, b;
  uint64_t slot_a = 0, slot_b = 0;  // indices in ProcessLog::slots
  bool operator==(const Put&) const = default;
};

// Where values are put.
enum class Place : uint8_t {
  results,     // what the candidate left
  inputs,      // what it read: nobody recorded made it
  downstream,  // what the first matched operators after it left, as its own have no counterpart
};

struct Experiment {
  std::vector<Put> puts;  // in the order of b's events
  Place place = Place::results;
  uint32_t executions = 0;  // of the candidate that are made good
  // Inputs that are expected to differ where values are put: they come from the candidate. By key
  // on either side, and the candidate's own by their place among its inputs.
  std::unordered_set<ValueKey, ValueKeyHash> carried;
  std::unordered_set<uint16_t> own_inputs;
  std::string refused;  // why there is nothing to put; "" if there is
};

// everywhere: every execution of the candidate up to the first differing model value is made good,
// and their recomputations in its backward pass; else the one it names alone. Everywhere is refused
// where it would be more than kMostPuts values.
inline constexpr size_t kMostPuts = 512;
Experiment plan_experiment(const Timeline& timeline, const ValueIndex& a, const ValueIndex& b,
                           const Pivot& candidate, const ModelDifference& difference,
                           bool everywhere);

// The selection of docs/tensors.md that means one event, and `slot` ("out/out0") of it: "" all.
// refused: a name that cannot be written in one, and why.
std::string selection_of(const Run& run, const EventRef& event, const std::string& slot,
                         std::string& refused);

// Which of its rank's processes, from 0.
uint32_t ordinal_of(const Run& run, int32_t process);

// The name of a slot in a captured file: "out/out0".
std::string tensor_name(const ProcessLog& log, const Slot& slot);

}  // namespace opguard
