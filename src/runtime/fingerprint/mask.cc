// A mask is told element by element: zero, or at most -1e4. The first element rules most tensors
// out, since they begin with a number above zero.
//
//   0, -inf, -inf, 0        a mask: 0 1 1 0 is fed to the hash of the pattern
//   0, -3.4e38, -1e9, 0     the same pattern
//   0, -0.5, ...            open() is false from here on, and nothing more is looked at
//
// Counterexample: zeros alone. They are no mask, since nothing is masked.
#include "runtime/fingerprint/mask.h"

#include <algorithm>

#include "runtime/fingerprint/fingerprint.h"

namespace opguard {

FloatType float_type(std::string_view dtype) {
  if (dtype == "float32") return FloatType::float32;
  if (dtype == "bfloat16") return FloatType::bfloat16;
  if (dtype == "float16") return FloatType::float16;
  if (dtype == "float64") return FloatType::float64;
  return FloatType::none;
}

bool may_be_mask(const Elements& e, FloatType type) {
  if (type == FloatType::none) return false;
  for (int64_t n : e.shape)
    if (n <= 0) return false;
  return may_be_mask(static_cast<const char*>(e.data), e.size, type);
}

bool may_be_mask(const char* data, uint32_t size, FloatType type) {
  if (type == FloatType::none) return false;
  // Most tensors begin with a number above zero, or with a whole one.
  if (!(data[size - 1] & 0x80)) {
    for (uint32_t i = 0; i < size; ++i)
      if (data[i] != 0) return false;
  }
  uint8_t masked;
  return !lane_sums().masked(data, 1, type, &masked).other;
}

MaskPattern::MaskPattern(FloatType type, uint64_t count, uint64_t first_element)
    : type_(type),
      element_size_(type == FloatType::float64   ? 8
                    : type == FloatType::float32 ? 4
                                                : 2),
      stream_(lane_width(count), first_element / lane_width(count)) {}

void MaskPattern::feed(const char* data, uint64_t elements) {
  constexpr uint64_t kAtOnce = 4096;
  uint8_t masked[kAtOnce];
  const LaneSums& sums = lane_sums();
  while (elements > 0 && open()) {
    const uint64_t n = std::min(elements, kAtOnce);
    const MaskSeen seen = sums.masked(data, n, type_, masked);
    if (seen.other) {
      type_ = FloatType::none;
      return;
    }
    any_ |= seen.masked;
    stream_.feed(reinterpret_cast<const char*>(masked), n);
    data += n * element_size_;
    elements -= n;
  }
}

std::optional<uint64_t> mask_pattern(const Elements& elements, std::string_view dtype) {
  return digest(elements, dtype).pattern;
}

}  // namespace opguard
