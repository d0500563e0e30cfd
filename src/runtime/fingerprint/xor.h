// runtime/fingerprint/xor.h: xor32 and xor64, the fingerprints of the OpGuard paper, beside og1:
// docs/formats/record-format.md. Cheaper, and blind to permutations and to changes that come in
// pairs.
#pragma once

#include <cstdint>

#include "runtime/fingerprint/row_walk.h"

namespace opguard {

// XOR of the elements' bytes in logical order, cut into little-endian words of 8 bytes, the last
// one padded with zeros. threads: as for digest().
uint64_t xor64(const Elements& elements, unsigned threads = 1);

// The same with words of 4 bytes.
uint32_t xor32(const Elements& elements, unsigned threads = 1);

}  // namespace opguard
