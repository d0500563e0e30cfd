// prove/extents.h: dimensions along which there is one element only, so that faults may hide.
//
// A sum over one element is its mean, and a transposed [n, 1] looks like a [1, n]. So a plan that
// is equal to its model at such extents need not be at larger ones.
//
//   a rank has [4, 1] of a weight [4, 2]            dimension 1 hides something
//   the model has [4, 1], and [4, 2] at width=2     so does this one: DIMS has width=1
//   a rank has tokens [1, 8] of [2, 8]              so does this one, if an operator sums over it
//   the model has [4, 1] whatever DIMS says         nothing is hidden: it is 1 at all sizes
//   a rank has one of two experts, at full dims too nothing is hidden: `--full` has seen that
#pragma once

#include <string>
#include <vector>

#include "prove/full_dims.h"
#include "prove/trace.h"

namespace opguard::proving {

struct ThinInput {
  std::string name;
  std::vector<size_t> dimensions;
  // Whether a sum may hide there. Tokens are looked up one by one; of state each extent counts.
  bool hides = true;
};

// Inputs of which some rank, or the model, has one element along a dimension that has more at other
// sizes. Those of which each rank that `full` looks at has one as well are left out. By name, in
// order.
std::vector<ThinInput> thin_inputs(const Captured& captured, const FullDims* full = nullptr);

// "dimension 0 of w", "dimensions 0 1 of w".
std::string thin_text(const ThinInput& thin);

}  // namespace opguard::proving
