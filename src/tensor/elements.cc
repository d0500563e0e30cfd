#include "tensor/elements.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>

namespace opguard {
namespace {

// memcpy, since elements of a file need not be aligned.
template <typename T>
void load(const unsigned char* data, uint64_t first, size_t count, uint64_t* out) {
  data += first * sizeof(T);
  for (size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, data + i * sizeof(T), sizeof(T));
    out[i] = value;
  }
}

int64_t sign_extended(uint64_t bits, uint32_t size_bytes) {
  const int shift = 64 - 8 * static_cast<int>(size_bytes);
  return static_cast<int64_t>(bits << shift) >> shift;
}

// Every value of a format of at most 16 bits: made once and kept. Not for several threads: the map
// has no lock.
const double* table(const FloatFormat& format) {
  static auto* tables = new std::map<const FloatFormat*, std::unique_ptr<double[]>>;
  std::unique_ptr<double[]>& values = (*tables)[&format];
  if (!values) {
    const size_t n = size_t{1} << format.total_bits();
    values = std::make_unique<double[]>(n);
    for (size_t bits = 0; bits < n; ++bits) values[bits] = format.value(bits);
  }
  return values.get();
}

// As many digits as tell two numbers of the type apart: 17 of a double, 9 of the others. Of NaN its
// bits, since all of them print alike.
std::string number_text(const Dtype& dtype, uint64_t bits) {
  char text[64];
  switch (dtype.kind) {
    case Dtype::floating:
    case Dtype::complex: {
      const double value = dtype.format->value(bits);
      if (std::isnan(value))
        std::snprintf(text, sizeof text, "nan (0x%llx)", static_cast<unsigned long long>(bits));
      else
        std::snprintf(text, sizeof text, dtype.format->mantissa_bits > 23 ? "%.17g" : "%.9g",
                      value);
      return text;
    }
    case Dtype::integer:
      return std::to_string(sign_extended(bits, dtype.size_bytes));
    case Dtype::unsigned_integer:
      return std::to_string(bits);
    case Dtype::boolean:
      if (bits < 2) return bits ? "True" : "False";
      [[fallthrough]];
    case Dtype::opaque:
      break;
  }
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(bits));
  return text;
}

}  // namespace

void Elements1D::bits(uint64_t first, size_t count, uint64_t* out) const {
  switch (size_) {
    case 1:
      return load<uint8_t>(data_, first, count, out);
    case 2:
      return load<uint16_t>(data_, first, count, out);
    case 4:
      return load<uint32_t>(data_, first, count, out);
    default:
      return load<uint64_t>(data_, first, count, out);
  }
}

void Elements1D::values(const uint64_t* bits, size_t count, double* out) const {
  if (dtype_->format != nullptr && size_ == 8) {
    for (size_t i = 0; i < count; ++i) out[i] = std::bit_cast<double>(bits[i]);
  } else if (dtype_->format != nullptr && size_ == 4) {
    for (size_t i = 0; i < count; ++i)
      out[i] = std::bit_cast<float>(static_cast<uint32_t>(bits[i]));
  } else if (dtype_->format != nullptr) {
    const double* values = table(*dtype_->format);
    for (size_t i = 0; i < count; ++i) out[i] = values[bits[i]];
  } else if (dtype_->kind == Dtype::integer) {
    for (size_t i = 0; i < count; ++i) out[i] = static_cast<double>(sign_extended(bits[i], size_));
  } else {
    for (size_t i = 0; i < count; ++i) out[i] = static_cast<double>(bits[i]);
  }
}

// Not over double: beyond 2^53 neighbours would be 0 apart.
uint64_t integer_distance(const Dtype& dtype, uint64_t a, uint64_t b) {
  if (dtype.kind == Dtype::integer) {
    const int64_t x = sign_extended(a, dtype.size_bytes), y = sign_extended(b, dtype.size_bytes);
    return x > y ? static_cast<uint64_t>(x) - static_cast<uint64_t>(y)
                 : static_cast<uint64_t>(y) - static_cast<uint64_t>(x);
  }
  return a > b ? a - b : b - a;
}

std::string element_text(const Tensor& tensor, uint64_t index) {
  const Elements1D numbers(tensor);
  uint64_t bits[2] = {};
  const uint32_t parts = tensor.dtype->parts();
  numbers.bits(index * parts, parts, bits);
  if (parts == 1) return number_text(*tensor.dtype, bits[0]);
  return "(" + number_text(*tensor.dtype, bits[0]) + ", " + number_text(*tensor.dtype, bits[1]) +
         ")";
}

ElementBits element_bits(const Tensor& tensor, uint64_t index) {
  ElementBits bits = {0, 0};
  const uint32_t size = tensor.dtype->size_bytes;
  const unsigned char* at = tensor.data + index * size;
  switch (size) {  // a constant size each: one load
    case 1:
      bits.low = *at;
      break;
    case 2:
      std::memcpy(&bits.low, at, 2);
      break;
    case 4:
      std::memcpy(&bits.low, at, 4);
      break;
    case 16:
      std::memcpy(&bits.high, at + 8, 8);
      [[fallthrough]];
    default:
      std::memcpy(&bits.low, at, 8);
  }
  return bits;
}

}  // namespace opguard
