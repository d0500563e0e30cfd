// session/held_shapes.h: which shapes the ranks of a run hold of one tensor, where these differ or
// may be padded.
//
//   parameter emb: 26 x 64, 26 x 64, 26 x 64, 25 x 64     parts 26, 26, 26, 25
//   parameter emb: 26 x 64 on all four                     parameter 26 x 64, if of 103 rows
//
// A tensor is told by its boundary, its slot and how often that came before in the process. Tokens
// that are sent to experts have other parts in each layer and step; the most frequent are kept.
//
// The cost: one pass over the slots of results, and eight bytes for each.
#pragma once

#include <compare>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "record/record.h"

namespace opguard {

struct HeldShapes {
  // Of one dimension, in the order of the ranks; not all equal. The most frequent first.
  std::vector<std::vector<int64_t>> parts;
  // Of each parameter that all ranks hold in one shape, by its name.
  std::map<std::string, std::vector<int64_t>> parameters;
};

HeldShapes held_shapes(const Run& run);

// A dimension of the reference's, and what each rank of the candidate holds of it: together they
// hold more than it has.
struct PaddedDim {
  int64_t whole = 0, local = 0;
  auto operator<=>(const PaddedDim&) const = default;
};

// Of parameters that both runs have.
std::set<PaddedDim> padded_dims(const Run& reference, const Run& candidate);

}  // namespace opguard
