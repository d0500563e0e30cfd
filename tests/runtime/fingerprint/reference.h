// og1 as docs/formats/record-format.md defines it, lane by lane, and tensors to try it on.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <string_view>
#include <vector>

#include "runtime/fingerprint/fingerprint.h"

namespace opguard {

inline Elements row_of(const void* data, uint32_t size, int64_t count) {
  return {data, size, {count}, {static_cast<int64_t>(size)}};
}

// On bytes in logical order.
struct Reference {
  static uint64_t mix(uint64_t x) {
    x ^= x >> 29;
    x *= 0xd6e8feb86659fd93u;
    return x ^ (x >> 32);
  }
  static uint64_t base(uint64_t dim) {
    uint64_t z = (dim + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (z & ~uint64_t{7}) | (dim % 2 == 0 ? 5 : 3);
  }
  static uint64_t raised(uint64_t base, uint64_t exponent) {
    uint64_t product = 1;
    for (; exponent > 0; exponent /= 2, base *= base)
      if (exponent % 2 == 1) product *= base;
    return product;
  }
  static Fingerprint of(const std::vector<uint8_t>& bytes, uint32_t size,
                        const std::vector<int64_t>& shape) {
    Fingerprint f;
    uint64_t row_bytes = size * static_cast<uint64_t>(shape.empty() ? 1 : shape.back());
    if (row_bytes == 0 || bytes.empty()) return f;
    uint64_t lane = row_bytes % 8 == 0 ? 8 : row_bytes % 4 == 0 ? 4 : row_bytes % 2 == 0 ? 2 : 1;
    for (uint64_t row = 0; row < bytes.size() / row_bytes; ++row) {
      uint64_t hash = 0, weight = 1;
      for (uint64_t at = 0; at < row_bytes; at += lane) {
        uint64_t value = 0;
        for (uint64_t b = 0; b < lane; ++b)
          value |= uint64_t{bytes[row * row_bytes + at + b]} << (8 * b);
        hash += mix(value) * weight;
        weight *= base(0);
      }
      uint64_t scale = 1, rest = row;
      for (size_t d = 1; d < shape.size(); ++d) {
        uint64_t n = static_cast<uint64_t>(shape[shape.size() - 1 - d]);
        scale *= raised(base(d), rest % n);
        rest /= n;
      }
      f.h += hash * scale;
      f.m += mix(hash);
    }
    return f;
  }
};

inline std::vector<uint8_t> random_bytes(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(n);
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
  return bytes;
}

// Types with numbers in them, by torch's names.
struct ElementName {
  const char* dtype;
  uint32_t size;
};
inline constexpr ElementName kElementNames[] = {
    {"bool", 1},
    {"uint8", 1},
    {"int8", 1},
    {"uint16", 2},
    {"int16", 2},
    {"uint32", 4},
    {"int32", 4},
    {"uint64", 8},
    {"int64", 8},
    {"float16", 2},
    {"bfloat16", 2},
    {"float32", 4},
    {"float64", 8},
    {"complex32", 4},
    {"complex64", 8},
    {"complex128", 16},
    {"float8_e4m3fn", 1},
    {"float8_e5m2", 1},
    {"float8_e4m3fnuz", 1},
    {"float8_e5m2fnuz", 1},
    {"float8_e8m0fnu", 1},
    {"float4_e2m1fn_x2", 1},
    {"bits16", 2},
};

// The layout-free digest, element by element, by the compiler's own conversions.
struct ElementsReference {
  static uint64_t narrow(float value) {
    uint32_t x;
    std::memcpy(&x, &value, 4);
    if (value == 0) x = 0;
    if (value != value) x = 0xffc00000u;
    x ^= x >> 15;
    x *= 0x2c1b3c6du;
    x ^= x >> 15;
    x *= 0x297a2d39u;
    return uint64_t{x} * x;
  }
  static uint64_t wide(uint64_t x) {
    x = Reference::mix(x);
    return x * (2 * x + 1);
  }
  static uint64_t real(double value) {
    if (value != value || static_cast<double>(static_cast<float>(value)) == value)
      return narrow(static_cast<float>(value));
    uint64_t bits;
    std::memcpy(&bits, &value, 8);
    return wide(bits);
  }
  static uint64_t integer(__int128 value) {
    const double rounded = static_cast<double>(value);
    return static_cast<__int128>(rounded) == value ? real(rounded)
                                                   : wide(static_cast<uint64_t>(value));
  }
  // A sign, then so many bits of exponent and of fraction.
  static double small(uint32_t bits, int exponents, int fractions, int bias) {
    const int exponent = static_cast<int>(bits >> fractions) & ((1 << exponents) - 1);
    const int fraction = static_cast<int>(bits) & ((1 << fractions) - 1);
    const double magnitude =
        exponent == 0 ? std::ldexp(fraction, 1 - bias - fractions)
                      : std::ldexp((1 << fractions) + fraction, exponent - bias - fractions);
    return bits >> (exponents + fractions) & 1 ? -magnitude : magnitude;
  }
  static double half(uint32_t bits) {
    if ((bits & 0x7fff) > 0x7c00) return NAN;
    if ((bits & 0x7fff) == 0x7c00) return bits >> 15 ? -INFINITY : INFINITY;
    return small(bits, 5, 10, 15);
  }
  static float bfloat16(uint32_t bits) {
    bits <<= 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
  }
  template <typename T>
  static T read(const uint8_t* at) {
    T value;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  static uint64_t element(std::string_view dtype, const uint8_t* at) {
    if (dtype == "bool") return *at != 0 ? narrow(1) : 0;
    if (dtype == "uint8") return integer(*at);
    if (dtype == "int8") return integer(read<int8_t>(at));
    if (dtype == "uint16" || dtype == "bits16") return integer(read<uint16_t>(at));
    if (dtype == "int16") return integer(read<int16_t>(at));
    if (dtype == "uint32") return integer(read<uint32_t>(at));
    if (dtype == "int32") return integer(read<int32_t>(at));
    if (dtype == "uint64") return integer(read<uint64_t>(at));
    if (dtype == "int64") return integer(read<int64_t>(at));
    if (dtype == "float16") return real(half(read<uint16_t>(at)));
    if (dtype == "bfloat16") return narrow(bfloat16(read<uint16_t>(at)));
    if (dtype == "float32") return narrow(read<float>(at));
    if (dtype == "float64") return real(read<double>(at));
    if (dtype == "complex32") return element("float16", at) + element("float16", at + 2);
    if (dtype == "complex64") return element("float32", at) + element("float32", at + 4);
    if (dtype == "complex128") return element("float64", at) + element("float64", at + 8);
    const bool no_negative_zero = dtype.ends_with("fnuz");
    if (no_negative_zero && *at == 0x80) return narrow(NAN);
    if (dtype == "float8_e4m3fn")
      return (*at & 127) == 127 ? narrow(NAN) : real(small(*at, 4, 3, 7));
    if (dtype == "float8_e5m2") return real(half(uint32_t{*at} << 8));
    if (dtype == "float8_e4m3fnuz") return real(small(*at, 4, 3, 8));
    if (dtype == "float8_e5m2fnuz") return real(small(*at, 5, 2, 16));
    if (dtype == "float8_e8m0fnu") return *at == 255 ? narrow(NAN) : real(std::ldexp(1, *at - 127));
    if (dtype == "float4_e2m1fn_x2")
      return real(small(*at & 15, 2, 1, 1)) + real(small(*at >> 4, 2, 1, 1));
    return 0;
  }
  static uint64_t of(const std::vector<uint8_t>& bytes, const ElementName& type) {
    uint64_t sum = 0;
    for (size_t at = 0; at < bytes.size(); at += type.size) sum += element(type.dtype, &bytes[at]);
    return sum;
  }
};

// Any permutation of dimensions, steps, reversals and broadcasts of a buffer.
struct Layout {
  std::vector<uint8_t> buffer;
  uint32_t size = 1;
  std::vector<int64_t> shape, strides;
  int64_t first = 0;

  Layout(std::mt19937& random, int64_t longest) {
    const uint32_t kSizes[] = {1, 2, 4, 8, 12, 16};
    size = kSizes[random() % 6];
    const size_t dims = random() % 5;
    shape.resize(dims);
    strides.resize(dims);
    std::vector<size_t> order(dims);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    int64_t span = size;
    for (size_t d : order) {
      shape[d] =
          static_cast<int64_t>(random() % static_cast<uint64_t>(longest)) + (random() % 9 != 0);
      const bool broadcast = random() % 6 == 0;
      strides[d] = broadcast ? 0 : span * static_cast<int64_t>(1 + random() % 8 / 7);
      if (!broadcast) span += strides[d] * std::max<int64_t>(shape[d] - 1, 0);
      if (!broadcast && shape[d] > 0 && random() % 5 == 0) {
        first += strides[d] * (shape[d] - 1);
        strides[d] = -strides[d];
      }
    }
    buffer = random_bytes(static_cast<size_t>(span) + 16, static_cast<uint32_t>(random()));
  }

  Elements elements() const { return {buffer.data() + first, size, shape, strides}; }
};

inline int64_t count_of(const Elements& e) {
  return std::accumulate(e.shape.begin(), e.shape.end(), int64_t{1}, std::multiplies<>());
}

// The bytes in logical order.
inline std::vector<uint8_t> logical(const Elements& e) {
  std::vector<uint8_t> bytes;
  const int64_t count = count_of(e);
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, at = 0;
    for (size_t d = e.shape.size(); d-- > 0; rest /= e.shape[d])
      at += e.strides[d] * (rest % e.shape[d]);
    const auto* element = static_cast<const uint8_t*>(e.data) + at;
    bytes.insert(bytes.end(), element, element + e.size);
  }
  return bytes;
}

}  // namespace opguard
