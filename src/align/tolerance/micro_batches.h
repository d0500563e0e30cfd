// align/tolerance/micro_batches.h: which micro-batch of the reference a rank's own one is.
//
//   reference, 4 micro-batches a step     model.wq in layers.0.attention runs 4 times: 1 in each
//   rank 1 of 2 data parallel ranks       runs it twice: its 0 and 1 are 1 and 3 of the reference
//   a stage of a pipeline                 4 times, however forward and backward interleave
//
// The first values of a step tell: those of the reference's micro-batch that a rank's are nearest
// to. Tokens and positions are sketched too, so what is taken from the data counts.
//
// A rank with as many as the reference has each once. Where two of its own are nearest to the same
// one, they are in the reference's order. A stage was given one of them in place of another.
//
// Counterexample: what runs once a step, or another number of times a micro-batch than in the
// reference, belongs to none. It is compared where it runs as often in both.
//
// The cost: a few tensors of each micro-batch against each of the reference.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "align/tolerance/tensors.h"

namespace opguard {

struct MicroBatchPlace {
  int32_t process = -1, rank = 0;
  uint32_t step = 0, local = 0, global = 0;
};

// Of the reference: how often an activity runs for each micro-batch.
class MicroBatchCounts {
 public:
  explicit MicroBatchCounts(const ProcessTensors& reference) : reference_(reference) {}

  // 1 where no backward pass was recorded.
  uint32_t of_step(uint32_t step) const;
  // 0: the activity belongs to no micro-batch.
  uint32_t runs_each(const Activity& activity) const;

 private:
  const ProcessTensors& reference_;
};

// The candidate's executions as the reference numbers them.
class MicroBatches {
 public:
  struct Reference {
    const ProcessTensors& tensors;
    const TensorIndex& index;
    SketchReader& sketches;
  };

  // `candidate`: by process, with activities named as the reference has them.
  MicroBatches(const Reference& reference, const std::vector<ProcessTensors>& candidate,
               const Run& run, SketchReader& sketches);

  // The execution of the reference; kNone: there is none that is the same.
  uint32_t execution(int32_t process, const Activity& activity, uint32_t execution) const;
  const std::vector<MicroBatchPlace>& places() const { return places_; }

 private:
  uint32_t count_of(int32_t process, uint32_t step) const;

  const ProcessTensors& reference_;
  const std::vector<ProcessTensors>& candidate_;
  MicroBatchCounts counts_;
  std::map<std::pair<int32_t, uint32_t>, std::vector<uint32_t>> global_;  // by process and step
  std::vector<MicroBatchPlace> places_;
};

}  // namespace opguard
