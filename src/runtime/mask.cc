#include "runtime/mask.h"

#include <bit>
#include <cstring>
#include <vector>

namespace opguard {
namespace {

enum class Kind : uint8_t { zero, masked, other };

// Bit patterns, so that each 16-bit type needs no arithmetic: negative numbers grow with their
// bits.
template <typename Bits, Bits kLimit, Bits kInfinity>
Kind classify(const char* element) {
  constexpr Bits kSign = Bits(Bits{1} << (sizeof(Bits) * 8 - 1));
  Bits bits;
  std::memcpy(&bits, element, sizeof(Bits));
  if (Bits(bits & ~kSign) == 0) return Kind::zero;
  return bits >= kLimit && bits <= kInfinity ? Kind::masked : Kind::other;  // NaN lies beyond
}

using Classify = Kind (*)(const char*);

// -1e4 and -inf of each type.
Classify classifier(std::string_view dtype) {
  if (dtype == "float32") return classify<uint32_t, 0xc61c4000u, 0xff800000u>;
  if (dtype == "bfloat16") return classify<uint16_t, 0xc61c, 0xff80>;
  if (dtype == "float16") return classify<uint16_t, 0xf0e2, 0xfc00>;
  if (dtype == "float64") return classify<uint64_t, 0xc0c3880000000000u, 0xfff0000000000000u>;
  return nullptr;
}

}  // namespace

std::optional<uint64_t> mask_pattern(const Elements& e, std::string_view dtype) {
  Classify kind_of = classifier(dtype);
  if (!kind_of) return {};
  int64_t count = 1;
  for (int64_t n : e.shape) count *= n;
  if (count == 0) return {};
  const size_t dims = e.shape.size();
  std::vector<int64_t> index(dims, 0);
  std::vector<uint8_t> pattern;
  const char* element = static_cast<const char*>(e.data);
  bool any = false;
  for (int64_t i = 0; i < count; ++i) {
    Kind kind = kind_of(element);
    if (kind == Kind::other) return {};
    any |= kind == Kind::masked;
    pattern.push_back(kind == Kind::masked);
    for (size_t d = dims; d-- > 0;) {
      element += e.strides[d];
      if (++index[d] < e.shape[d]) break;
      element -= e.strides[d] * e.shape[d];
      index[d] = 0;
    }
  }
  if (!any) return {};
  uint64_t flat = 0;
  fingerprint({pattern.data(), 1, {count}, {1}}, &flat);
  return flat;
}

}  // namespace opguard
