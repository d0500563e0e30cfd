// By the processor's instruction, eight bytes at a time. Else by tables, eight bytes at a time as
// well: each byte has its own table, which knows how many bytes come behind it.
#include "record/crc.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace opguard {
namespace {

// kTables[k][b]: effect of byte b followed by k zero bytes, so that eight bytes need eight look-ups
// and no chain between them.
constexpr auto kTables = [] {
  std::array<std::array<uint32_t, 256>, 8> t{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t c = b;
    for (int i = 0; i < 8; ++i) c = (c >> 1) ^ (c & 1 ? 0x82f63b78u : 0);  // reversed polynomial
    t[0][b] = c;
  }
  for (int k = 1; k < 8; ++k)
    for (uint32_t b = 0; b < 256; ++b) t[k][b] = (t[k - 1][b] >> 8) ^ t[0][t[k - 1][b] & 0xff];
  return t;
}();

#if defined(__x86_64__)
// By the instruction for it, on any processor of the last fifteen years.
__attribute__((target("sse4.2"))) uint32_t crc32c_sse42(uint32_t crc, const uint8_t* p,
                                                        size_t size) {
  uint64_t c = ~crc;
  for (; size >= 8; size -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, sizeof word);
    c = _mm_crc32_u64(c, word);
  }
  for (; size > 0; --size, ++p) c = _mm_crc32_u8(static_cast<uint32_t>(c), *p);
  return ~static_cast<uint32_t>(c);
}
#endif

}  // namespace

uint32_t crc32c(uint32_t crc, const void* data, size_t size) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return crc32c_sse42(crc, static_cast<const uint8_t*>(data), size);
#endif
  return crc32c_plain(crc, data, size);
}

uint32_t crc32c_plain(uint32_t crc, const void* data, size_t size) {
  const auto* p = static_cast<const uint8_t*>(data);
  uint32_t c = ~crc;
  for (; size >= 8; size -= 8, p += 8) {
    c = kTables[7][(c ^ p[0]) & 0xff] ^ kTables[6][((c >> 8) ^ p[1]) & 0xff] ^
        kTables[5][((c >> 16) ^ p[2]) & 0xff] ^ kTables[4][(c >> 24) ^ p[3]] ^ kTables[3][p[4]] ^
        kTables[2][p[5]] ^ kTables[1][p[6]] ^ kTables[0][p[7]];
  }
  for (; size > 0; --size, ++p) c = (c >> 8) ^ kTables[0][(c ^ *p) & 0xff];
  return ~c;
}

}  // namespace opguard
