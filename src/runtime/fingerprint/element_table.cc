// A type has a number by which the loops are chosen. A name that is not known goes by its width. So
// elements of a new type of two bytes are told apart by their bits, as uint16's are.
//
//   "complex64"     float32: its parts are elements of their own
//   "float8_e8m0fnu" and other types of one byte     by a table of 256 terms, made once
//
// Counterexample: types of 16 bytes and more that are not named. They have no digest.
#include "runtime/fingerprint/element_table.h"

#include <array>
#include <cstring>

#include "device/element.h"

namespace opguard {
namespace {

struct Name {
  std::string_view dtype;
  uint32_t type;
};

// The usual ones first.
constexpr Name kNames[] = {
    {"float32", OPGUARD_ELEMENT_FLOAT32},
    {"bfloat16", OPGUARD_ELEMENT_BFLOAT16},
    {"float16", OPGUARD_ELEMENT_FLOAT16},
    {"int64", OPGUARD_ELEMENT_INT64},
    {"bool", OPGUARD_ELEMENT_BOOL},
    {"uint8", OPGUARD_ELEMENT_UINT8},
    {"float64", OPGUARD_ELEMENT_FLOAT64},
    {"int32", OPGUARD_ELEMENT_INT32},
    {"int8", OPGUARD_ELEMENT_INT8},
    {"int16", OPGUARD_ELEMENT_INT16},
    {"uint16", OPGUARD_ELEMENT_UINT16},
    {"uint32", OPGUARD_ELEMENT_UINT32},
    {"uint64", OPGUARD_ELEMENT_UINT64},
    {"complex64", OPGUARD_ELEMENT_FLOAT32},
    {"complex128", OPGUARD_ELEMENT_FLOAT64},
    {"complex32", OPGUARD_ELEMENT_FLOAT16},
    {"float8_e4m3fn", OPGUARD_ELEMENT_FLOAT8_E4M3FN},
    {"float8_e5m2", OPGUARD_ELEMENT_FLOAT8_E5M2},
    {"float8_e4m3fnuz", OPGUARD_ELEMENT_FLOAT8_E4M3FNUZ},
    {"float8_e5m2fnuz", OPGUARD_ELEMENT_FLOAT8_E5M2FNUZ},
    {"float8_e8m0fnu", OPGUARD_ELEMENT_FLOAT8_E8M0FNU},
    {"float4_e2m1fn_x2", OPGUARD_ELEMENT_FLOAT4X2},
    {"qint8", OPGUARD_ELEMENT_INT8},
    {"qint32", OPGUARD_ELEMENT_INT32},
};

}  // namespace

uint32_t element_type(std::string_view dtype, uint32_t element_bytes) {
  for (const Name& name : kNames)
    if (name.dtype == dtype) return name.type;
  switch (element_bytes) {
    case 1:
      return OPGUARD_ELEMENT_UINT8;
    case 2:
      return OPGUARD_ELEMENT_UINT16;
    case 4:
      return OPGUARD_ELEMENT_UINT32;
    case 8:
      return OPGUARD_ELEMENT_UINT64;
    default:
      return OPGUARD_ELEMENT_NONE;
  }
}

unsigned element_width(uint32_t type) { return device::element_width(type); }

const uint64_t* element_table(uint32_t type) {
  constexpr size_t kTypes = OPGUARD_ELEMENT_FLOAT4X2 + 1;
  static const auto* tables = [] {
    auto* all = new std::array<std::array<uint64_t, 256>, kTypes>;  // never destroyed
    for (uint32_t t = 0; t < kTypes; ++t)
      for (uint32_t b = 0; b < 256; ++b) (*all)[t][b] = device::element_term(t, b);
    return all;
  }();
  return (*tables)[type].data();
}

// The slow loop: for what holds a number that the type's own loop is not made for.
uint64_t elements_one_by_one(const char* data, uint64_t bytes, uint32_t type) {
  const size_t size = size_t{1} << device::element_width(type);
  uint64_t sum = 0;
  for (uint64_t at = 0; at < bytes; at += size) {
    uint64_t bits = 0;
    std::memcpy(&bits, data + at, size);
    sum += device::element_term(type, bits);
  }
  return sum;
}

}  // namespace opguard
