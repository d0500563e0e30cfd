// runtime/fingerprint/small_row.h: the digest of up to 1 KiB in one row, without a Pass over it
// (fingerprint.cc). To set one up would cost more than the reading.
//
//   float32 [16], [1, 256]      such rows
//   float32 [16, 16]            none: several rows
//   x[::2]                      none: its elements do not lie one behind the other
#pragma once

#include <cstdint>

#include "runtime/fingerprint/fingerprint.h"

namespace opguard {

// All of Digest but the pattern of a mask. `type`: opguard_element_type. False: not such a row.
bool small_row(const Elements& elements, uint32_t type, Digest& result);

}  // namespace opguard
