// align/values/movers.h: operators that compute nothing, by what they left.
#pragma once

#include <string_view>

#include "record/record.h"

namespace opguard {

// Whether this execution only moved elements, whatever its name. Each of its results
// - has the elements of an input, or of all of them together (a transpose, a concatenation), or
//   some times those of one input (a repetition);
// - or is a part of one, in its memory, that nobody wrote (a slice);
// - or all results together are one input, or all inputs (a split).
// False where digests are not known, and for what rounds, or picks single elements by an index.
bool rearranges(const ProcessLog& log, const Event& event);

// Whether it writes all of the tensor in the slot: what was there has no part in the result.
// By name, since a copy that casts leaves other elements than those it read.
bool overwrites(std::string_view callee, std::string_view slot);

}  // namespace opguard
