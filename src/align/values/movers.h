// align/values/movers.h: operators that compute nothing, by their name in source and by what they
// left.
#pragma once

#include <string_view>

#include "record/record.h"

namespace opguard {

// Whether it only moves bytes: views, copies, concatenations. callee: as in source, "torch.cat".
bool moves_bytes(std::string_view callee);

// Whether this execution only moved bytes, whatever its name: each result has the elements of an
// input of its dtype, or of all of them together (Slot::digest). False where that is not known.
bool rearranges(const ProcessLog& log, const Event& event);

// Whether it writes all of the tensor in the slot: what was there has no part in the result.
bool overwrites(std::string_view callee, std::string_view slot);

}  // namespace opguard
