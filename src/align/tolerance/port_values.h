// align/tolerance/port_values.h: which tensor of the reference a port's own one is, where the two
// programs have no names in common.
//
//   a   model.layers.3.self_attn.o_proj.weight   b   layers.3.wo.weight, of the same content
//   a   transformer.h.0.attn.c_attn.weight       b   qkv.weight, its transpose: the same elements
//   a   the result of silu(gate)                 b   the same within rounding, in the same order
//
// Parameters are paired by their content as the first step reads them: the sketch, else the digest
// of the elements. A transpose leaves that as it is, and it adds up where weights are joined.
// Losses, parameters and gradients are then paired by these names and their order. What operators
// and autograd nodes make is paired by value, in the longest common order. The reference sketches
// its results with dimensions exchanged too: [2, 64, 12] is known as [2, 12, 64].
//
// Counterexample: parameters of the same constant are told by their order alone.
//
// The cost: of each micro-batch a distance of 64 numbers for each pair of results of one form.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "align/tolerance/noise_level.h"
#include "align/tolerance/tensors.h"

namespace opguard {

struct PortValues {
  bool told = false;              // the candidate is a port
  uint64_t parameters = 0;        // of the candidate
  uint64_t parameters_equal = 0;  // with a partner of the same content
  uint64_t parameters_moved = 0;  // with one of the same elements, at other places or joined
  uint64_t results = 0, results_paired = 0;  // of the candidate's first forward pass
  // Names of the candidate and of the reference.
  std::vector<std::pair<std::string, std::string>> names;
  // Of the reference: parameters that only the losses behind them tell of.
  std::unordered_set<std::string> only_by_losses;
  // By slot of the candidate: number among the reference's tensors.
  std::unordered_map<uint64_t, uint32_t> partners;
  // The same of results whose dimensions are exchanged: known, and not compared.
  struct Exchanged {
    uint32_t tensor = 0;  // of the reference
    uint8_t dims = 0;     // SketchSet::dim
  };
  std::unordered_map<uint64_t, Exchanged> exchanged;
  // Of the candidate: values that the reference has as well, at other places or once more.
  std::vector<SlotRef> known;

  // The first few of `names`, without those that are the same name.
  std::vector<std::pair<std::string, std::string>> examples() const;
  bool is_only_by_losses(std::string_view slot) const;  // "param:..." or "grad:..."
};

// Less than a quarter of the candidate's parameters have a partner of the same name.
bool is_port(const ProcessTensors& reference, const ProcessTensors& candidate, const Texts& texts);

struct PortSide {
  const Run& run;
  const ProcessTensors& tensors;
};

// What two results may differ by is what rounding does to the reference's, times `factor`.
PortValues pair_port(const PortSide& reference, const PortSide& candidate, const Texts& texts,
                     const NoiseLevels& levels, double factor);

}  // namespace opguard
