// report/tolerance_text.h: a comparison within rounding in words.
//
//   "sharded along 2"                       placement_text: what the ranks hold
//   "partial sum, sharded along 0 x 2"      each has a part, and their sum is twice the reference's
//   "layers.0.attention out0"               tensor_text: which tensor of the reference
//
// Counterexample: the bit-exact reasons are reasons.h's. Here stand those that have a placement, an
// error or a declaration, and words() there asks for them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "align/judge/reason.h"
#include "align/tolerance/comparison.h"

namespace opguard {

// "" for a reason of another kind.
std::string tolerance_words(const Reason& reason);

// "replicated", "partial sum, sharded along 0 x 2", "sharded along 0, 1 piece omitted".
std::string placement_text(const TensorPlacement& placement);

// The module and the slot, of a gradient the node too; a parameter's or its gradient's name alone.
std::string tensor_text(const Comparison& comparison, const ComparedTensor& tensor);

// Three digits: "2.1e-07", "0.5".
std::string short_number(double value);

// Of a DeclaredTensor's text: "Shard(0)" of "Shard(0) over ranks 0-1".
std::string placements_of(const std::string& text);
// What is declared of a compared tensor itself.
std::map<uint32_t, const DeclaredTensor*> declared_by_tensor(const Comparison& comparison);
// "as_found", "otherwise", "untold".
const char* declared_name(DeclaredState state);

const char* state_name(TensorState state);
const char* placement_name(PlacementKind kind);

}  // namespace opguard
