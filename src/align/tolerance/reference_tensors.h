// align/tolerance/reference_tensors.h: the tensors of a reference, as if one process had made them.
//
//   one process, 4 micro-batches a step     its own
//   2 data parallel ranks, 2 each           those of rank 0, and behind them rank 1's as micro-
//                                           batches 2 and 3; parameters and gradients of rank 0
//
// So a run of DDP is the reference of one of FSDP, on as many ranks or on others.
//
// Counterexample: ranks of tensor parallelism. Each has other numbers under a parameter's name, so
// the whole is on none: these are no replicas.
//
// The cost: one pass over the events of each process that have sketches.
#pragma once

#include <vector>

#include "align/tolerance/tensors.h"
#include "record/record.h"

namespace opguard {

// Whether all processes with sketches have the same parameters, bit by bit, when they are first
// recorded. True of one process.
bool are_replicas(const Run& reference);

// Empty without sketches.
ProcessTensors reference_tensors(const Run& reference, Texts& texts,
                                 StepsBy steps = StepsBy::optimizer);

// By step: the forward and backward passes process by process, then what the first one records
// behind them.
ProcessTensors replicas_as_one(std::vector<ProcessTensors> all);

}  // namespace opguard
