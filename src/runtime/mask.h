// runtime/mask.h: additive masks, which differ in their constant and mean the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/fingerprint.h"

namespace opguard {

// If every element is zero or at most -1e4 (exp() of it is zero in any score's company) and some
// are not zero: the flat hash of which elements are masked, one byte (1 masked, 0 not) an element.
// dtype: torch's name without "torch."; other dtypes than float16, bfloat16, float32, float64 are
// no masks. Stops at the first other element, so an ordinary tensor costs a few reads.
std::optional<uint64_t> mask_pattern(const Elements& elements, std::string_view dtype);

}  // namespace opguard
