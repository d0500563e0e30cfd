// align/tolerance/joined_parameters.h: parameters that are several of the other run's in one.
//
//   b  qkv.weight [144, 48]         a  q_proj, k_proj, v_proj, one after the other
//   b  memory.weight [192, 48]      a  layer 0's k_proj and v_proj, layer 1's; what stands between
//                                      them in a is paired already, or joined to another one first
//   b  value_bias [2, 48]           a  two biases [48], stacked
//
// Digests of elements add up, and no order of elements changes them.
//
// Counterexample: a weight of which a part is left out. No digests make its own.
//
// The cost: for each parameter without a partner, each stretch of at most 64 of the others.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "align/tolerance/port_values.h"

namespace opguard {

// Numbers of a run's parameters, in its order; those that have a partner are `used`.
struct PortParameters {
  const std::vector<uint32_t>& numbers;
  const PortSide& side;
  std::set<uint32_t>& used;
};

struct JoinedParameter {
  uint32_t whole = 0;
  std::vector<uint32_t> parts;
};

// Each of `one` that is several of `several`. All of these are used then.
std::vector<JoinedParameter> joined_parameters(const PortParameters& one,
                                               const PortParameters& several);

}  // namespace opguard
