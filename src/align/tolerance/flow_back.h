// align/tolerance/flow_back.h: from tensors of the candidate that are not the reference's, back to
// where that begins.
//
//   grad of wq (beyond) <- node (beyond) <- node (beyond) <- the loss (equal)      begins at the
//                                                             second node
//   residual sum (beyond) <- wo's result (partial sums)       begins at wo: nobody added them up
//
// A multiple comes of a multiple, and parts of a sum of parts: what is beyond on the way to these
// is walked through, as a value that only this layout has.
//
// Counterexample: partial sums that a collective reads are as they should be.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "align/tolerance/comparison.h"
#include "align/values/value_index.h"

namespace opguard {

struct ToleranceOrigin {
  uint32_t tensor = 0;           // of Comparison::tensors
  std::vector<EventRef> region;  // of the candidate, between it and what is known; latest first
  bool operator==(const ToleranceOrigin&) const = default;
};

class FlowBack {
 public:
  FlowBack(const Run& candidate, const Comparison& comparison);

  // By the order of the reference. `sinks` are numbers of Comparison::tensors.
  std::vector<ToleranceOrigin> origins(const std::vector<uint32_t>& sinks) const;

 private:
  struct Reached {
    std::vector<uint32_t> tensors;
    std::vector<EventRef> region;
  };
  // Does a tensor in that state lead on from one in `of`?
  static bool leads_on(TensorState state, TensorState of, bool over_ranks);
  void explore(const EventRef& event, bool communicates, TensorState of, Reached& reached,
               std::unordered_map<uint64_t, bool>& seen) const;
  std::vector<SlotRef> read_by(const EventRef& event) const;

  const Run& run_;
  const Comparison& comparison_;
  ValueIndex values_;
  std::unordered_map<uint64_t, uint32_t> at_;  // tensors of the candidate, by process and slot
  std::unordered_map<ValueKey, uint32_t, ValueKeyHash> parameters_;
};

}  // namespace opguard
