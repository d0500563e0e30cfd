// align/tolerance/comparison.h: each tensor of the reference beside what the candidate's ranks
// hold of it.
//
//   reference   layers.0.attention.wq's result, [2, 16, 64]
//   candidate   two ranks with [2, 16, 32]: sharded along 2, error 2e-7, allowed 1e-6      equal
//   candidate   whose sum is twice that                                                    scaled
//   candidate   at 3e-2 from everything                                                    beyond
//
// What is allowed is what rounding did to the same tensor of the reference, run again with jitter,
// times a factor. Where the candidate's type is narrower the jitter is as coarse. No operator of a
// first forward pass may make more of it than a few units. Angles in bfloat16 have a cosine that is
// as far off as jitter says, and that no one wants.
//
// Counterexample: a tensor of zeros, or one that jitter alone moves by a quarter of its norm, says
// nothing. It is not judged, and counted.
//
// The cost: of each tensor the hypotheses of placement.h.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "align/tolerance/declaration.h"
#include "align/tolerance/layers.h"
#include "align/tolerance/micro_batches.h"
#include "align/tolerance/placement.h"
#include "align/tolerance/port_values.h"
#include "align/tolerance/tensors.h"

namespace opguard {

struct ToleranceOptions {
  double factor = 4;  // allowed is so many times the noise
};

enum class TensorState : uint8_t {
  equal,    // within what is allowed
  partial,  // the ranks' sum or mean is
  scaled,   // a multiple of it is
  beyond,   // nothing is, or a piece is held by no rank
  unjudged  // zeros, too noisy
};

struct ComparedTensor {
  SketchedTensor a;        // of the reference
  std::vector<SlotRef> b;  // of each rank that holds it
  std::vector<int32_t> ranks;
  uint32_t micro_batch = kNone;
  double noise = 0, allowed = 0;  // relative to the norm
  double jittered = 0;            // what jitter says alone; `noise` is at most what is wanted
  double unit = 1;                // factor of its micro-batch's gradients
  double norm = 0;                // of the reference's value
  bool finite_a = true, finite_b = true;  // every element
  TensorPlacement placement;
  TensorState state = TensorState::equal;
};

// What a library says of a tensor of the candidate's. It is a compared one, or the same bytes under
// a name that the reference does not have. DTensor.from_local(part, mesh, [Replicate()]) is
// such.
struct DeclaredTensor {
  uint32_t tensor = 0;       // of Comparison::tensors, whose value it is
  bool compared = true;      // `b` are the compared tensor's own
  std::vector<SlotRef> b{};  // of each rank
  std::vector<int32_t> ranks{};
  std::string text{};  // "Replicate() over ranks 0-1", of the first rank
  DeclaredState state = DeclaredState::untold;
};

struct Comparison {
  Texts texts;
  ProcessTensors reference;
  std::vector<ComparedTensor> tensors;  // in the order of the reference
  uint64_t missing = 0;                 // of the reference, that no rank has
  std::vector<LayerPlace> layers;
  std::vector<std::pair<std::string, uint32_t>> layers_of_none;
  std::vector<MicroBatchPlace> micro_batches;
  std::vector<DeclaredTensor> declared;  // by `tensor`
  PortValues port;
  std::set<uint32_t> summed_losses;  // steps: summed_losses.h
  double coarser = 1;                // the candidate's type is so many times coarser
};

// `reference` has one process with sketches, or several that are_replicas(). `noise`: the same
// program with jitter.
Comparison compare_tensors(const Run& reference, const Run& candidate,
                           const std::vector<Run>& noise, const ToleranceOptions& options);

// The process with sketches, -1 for none, -2 for several.
int32_t only_process(const Run& run);

}  // namespace opguard
