//   up to 64 bytes, in words of 8     word by word, here: a call of the loop would cost more
//   up to 1 KiB in one row            by the loops of this processor, once for each sum
//   anything else                     false: a Pass (fingerprint.cc)
//
// tiny_digest() is for a caller that knows already that the bytes lie in one row.
#include "runtime/fingerprint/small_row.h"

#include <cstring>

#include "device/element.h"
#include "device/plugin.h"
#include "runtime/fingerprint/element_table.h"
#include "runtime/fingerprint/lane_stream.h"
#include "runtime/fingerprint/lane_sums.h"
#include "runtime/fingerprint/mask.h"

namespace opguard {
namespace {

constexpr uint64_t kSmall = 1 << 10;  // bytes

uint64_t elements_of(const char* data, uint64_t bytes, uint32_t type) {
  return lane_sums().elements(data, 0, 1, bytes >> element_width(type), type);
}

// Of so few that the call of a vector's loop costs more.
uint64_t hash_of_words(const char* data, uint64_t bytes) {
  const uint64_t* weights = powers().last;
  uint64_t hash = 0;
  for (uint64_t at = 0; at < bytes; at += 8) {
    uint64_t lane;
    std::memcpy(&lane, data + at, sizeof lane);
    hash += mix(lane) * *weights++;
  }
  return hash;
}

}  // namespace

// Of one row h is its hash, m the hash mixed, and the flat hash is the row's.
bool small_row(const Elements& e, uint32_t type, Digest& result) {
  uint64_t rows = 1;
  for (size_t d = 0; d + 1 < e.shape.size(); ++d) rows *= static_cast<uint64_t>(e.shape[d]);
  const int64_t count = e.shape.empty() ? 1 : e.shape.back();
  const uint64_t bytes = static_cast<uint64_t>(count) * e.size;
  if (rows != 1 || bytes > kSmall || (count > 1 && e.strides.back() != e.size)) return false;
  const size_t width = lane_width(bytes);
  const LaneSums& sums = lane_sums();
  const auto* data = static_cast<const char*>(e.data);
  uint64_t hash = 0;
  if (width == 8 && bytes <= kTinyBytes)
    hash = hash_of_words(data, bytes);
  else
    hash = sums.segment(data, bytes / width, width, false);
  result.value = {hash, mix(hash)};
  result.flat = hash;
  if (type != OPGUARD_ELEMENT_NONE) result.elements = elements_of(data, bytes, type);
  return true;
}

bool tiny_digest(const char* data, uint64_t bytes, uint32_t size, NumberType type, Digest& result) {
  if (bytes == 0 || bytes > kTinyBytes || bytes % 8 != 0 || type.element == OPGUARD_ELEMENT_NONE)
    return false;
  if (may_be_mask(data, size, type.mask)) return false;
  const uint64_t hash = hash_of_words(data, bytes);
  result.value = {hash, mix(hash)};
  result.flat = hash;
  result.pattern.reset();
  if (type.element != OPGUARD_ELEMENT_FLOAT32) {
    result.elements = elements_of(data, bytes, type.element);
    return true;
  }
  uint64_t sum = 0;
  for (uint64_t at = 0; at < bytes; at += 4) {
    uint32_t bits;
    std::memcpy(&bits, data + at, sizeof bits);
    sum += device::narrow_term(bits);
  }
  result.elements = sum;
  return true;
}

}  // namespace opguard
