// align/values/overwrites.h: operators that write all of a tensor, whatever was in it.
#pragma once

#include <string_view>

namespace opguard {

// Whether it writes all of the tensor in the slot: what was there has no part in the result.
// By name, since a copy that casts leaves other elements than those it read.
bool overwrites(std::string_view callee, std::string_view slot);

}  // namespace opguard
