// tensor/elements.h: a tensor's numbers in blocks, as bits and as values.
//
//   float16 [1.0, -2.0]     bits 0x3c00, 0xc000       values 1, -2
//   int8 [-1]               bits 0xff                 values -1
//   complex64 [1 - 2j]      bits of 1, bits of -2     values 1, -2: two numbers
//
// Bits tell whether two numbers are the same, values by how much they are not. Counterexample:
// values alone. 0.0 and -0.0 are equal by value, and 2^53 and 2^53 + 1 are one double.
//
// The cost: a block of kBlock numbers is on the caller's stack. Formats of 16 bits and less are
// read from a table of all their values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tensor/tensor.h"

namespace opguard {

inline constexpr size_t kBlock = 2048;  // numbers read at once; fits the first cache

// The numbers of a tensor in order; a complex element is two of them, real part first.
class Elements1D {
 public:
  explicit Elements1D(const Tensor& tensor)
      : data_(tensor.data),
        dtype_(tensor.dtype),
        size_(tensor.dtype->part_bytes()),
        count_(tensor.count() * tensor.dtype->parts()) {}

  uint64_t count() const { return count_; }
  const FloatFormat* format() const { return dtype_->format; }
  // count <= kBlock numbers from `first` on.
  void bits(uint64_t first, size_t count, uint64_t* out) const;
  // From bits that bits() gave. Integers beyond 2^53 are rounded.
  void values(const uint64_t* bits, size_t count, double* out) const;

 private:
  const unsigned char* data_;
  const Dtype* dtype_;
  uint32_t size_;
  uint64_t count_;
};

// |a - b| of two integers of the dtype, exact.
uint64_t integer_distance(const Dtype& dtype, uint64_t a, uint64_t b);

// An element as people read it: "1.5", "nan (0x7fc00001)", "(1, -2)", "0x3f" of opaque bits.
std::string element_text(const Tensor& tensor, uint64_t index);

// 128 bits of an element, to tell elements apart; of one dtype only.
struct ElementBits {
  uint64_t low, high;
  bool operator==(const ElementBits&) const = default;
};
ElementBits element_bits(const Tensor& tensor, uint64_t index);

}  // namespace opguard
