// record/crc.h: CRC-32C (Castagnoli), the checksum of every chunk of a log.
#pragma once

#include <cstddef>
#include <cstdint>

namespace opguard {

// Continues `crc` (0 to begin) over `size` bytes; crc32c(crc32c(0, a), b) == crc32c(0, ab).
uint32_t crc32c(uint32_t crc, const void* data, size_t size);

// The same on a processor without an instruction for it.
uint32_t crc32c_plain(uint32_t crc, const void* data, size_t size);

}  // namespace opguard
