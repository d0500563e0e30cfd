// align/tolerance/judge_tolerance.h: what a comparison within rounding means: equivalent, or the
// operator at which the candidate leaves the reference, and how.
//
//   judged by        losses, gradients before they are clipped, parameters as they are next read
//   the walk back    from the first of these that is not the reference's, through what the
//                    candidate's values were made of, to a tensor all of whose inputs are
//   kind             missing_reduce, scale, omits, replicas, stale, mapping, precision,
//                    declared, value
//
// Values of the candidate that the reference has no name for, are walked
// through, as the parts of a collective. They are the region of what they lead to.
//
// Counterexample: an inner value that nothing explains, where every loss, gradient and parameter is
// explained, is no finding. A rank's part of a masked embedding is such.
//
// The cost: the walk touches what differs, and the producers of it are looked up in an index.
#pragma once

#include <vector>

#include "align/judge/verdict.h"
#include "align/tolerance/comparison.h"
#include "align/tolerance/flow_back.h"

namespace opguard {

// The largest error of what is explained, as a multiple of its noise.
double worst_ratio(const Comparison& comparison);

// Pivot::tensor says which of comparison.tensors a candidate is about.
Verdict judge_tolerance(const Run& reference, const Run& candidate, const Comparison& comparison);

// The operators that are named for origins, and their kinds.
std::vector<Pivot> tolerance_pivots(const Run& reference, const Run& candidate,
                                    const Comparison& comparison,
                                    const std::vector<ToleranceOrigin>& origins);

}  // namespace opguard
