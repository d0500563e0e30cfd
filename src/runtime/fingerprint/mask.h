// runtime/fingerprint/mask.h: additive masks, which differ in their constant and mean the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/fingerprint/lane_stream.h"
#include "runtime/fingerprint/lane_sums.h"
#include "runtime/fingerprint/row_walk.h"

namespace opguard {

// By torch's name of a dtype without "torch."; no other type can be a mask.
FloatType float_type(std::string_view dtype);

// Is it worth looking further? False where the first element belongs to no mask.
bool may_be_mask(const Elements& elements, FloatType type);
bool may_be_mask(const char* first, uint32_t size, FloatType type);

// The flat hash of which elements are masked, one byte (1 masked, 0 not) an element, from pieces of
// a tensor of `count` elements. It gives up at the first element that is neither zero nor masked.
class MaskPattern {
 public:
  MaskPattern(FloatType type, uint64_t count, uint64_t first_element);

  bool open() const { return type_ != FloatType::none; }
  void feed(const char* data, uint64_t elements);
  bool any() const { return any_; }
  uint64_t sum() const { return stream_.sum(); }

 private:
  FloatType type_;
  size_t element_size_;
  LaneStream stream_;
  bool any_ = false;
};

// If every element is zero or at most -1e4 (exp() of it is zero in any score's company) and some
// are not zero: the pattern. Reads the tensor for this alone; fingerprint.h's digest() does not.
std::optional<uint64_t> mask_pattern(const Elements& elements, std::string_view dtype);

}  // namespace opguard
