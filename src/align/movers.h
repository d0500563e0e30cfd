// align/movers.h: operators that compute nothing, by their name in source.
#pragma once

#include <string_view>

namespace opguard {

// Whether it only moves bytes: views, copies, concatenations. callee: as in source, "torch.cat".
bool moves_bytes(std::string_view callee);

// Whether it writes all of the tensor in the slot: what was there has no part in the result.
bool overwrites(std::string_view callee, std::string_view slot);

}  // namespace opguard
