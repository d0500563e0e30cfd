#include "runtime/fingerprint/integers.h"

#include <cstdint>
#include <cstring>

namespace opguard {
namespace {

constexpr uint64_t kMostElements = uint64_t{1} << 22;

// `size` elements in logical order. The index runs as an odometer does. The last dimension moves by
// its stride. Where it ends it goes back to its beginning, and the one before it moves.
template <typename T>
void convert(const Elements& e, uint64_t size, std::vector<double>& out) {
  std::vector<int64_t> index(e.shape.size(), 0);
  const char* at = static_cast<const char*>(e.data);
  for (uint64_t i = 0; i < size; ++i) {
    T x;
    std::memcpy(&x, at, sizeof x);
    out.push_back(static_cast<double>(x));
    for (size_t d = e.shape.size(); d-- > 0;) {
      at += e.strides[d];
      if (++index[d] < e.shape[d]) break;
      at -= e.strides[d] * e.shape[d];
      index[d] = 0;
    }
  }
}

}  // namespace

std::vector<double> integers_as_doubles(const Elements& e, std::string_view dtype) {
  std::vector<double> out;
  uint64_t size = 1;
  for (const int64_t n : e.shape) {
    if (n <= 0 || size > kMostElements / static_cast<uint64_t>(n)) return out;
    size *= static_cast<uint64_t>(n);
  }
  out.reserve(size);
  if (dtype == "int64") convert<int64_t>(e, size, out);
  if (dtype == "int32") convert<int32_t>(e, size, out);
  if (dtype == "int16") convert<int16_t>(e, size, out);
  if (dtype == "int8") convert<int8_t>(e, size, out);
  if (dtype == "uint8" || dtype == "bool") convert<uint8_t>(e, size, out);
  return out;
}

Elements elements_of(const std::vector<double>& values, const std::vector<int64_t>& shape) {
  Elements e{values.data(), sizeof(double), shape, std::vector<int64_t>(shape.size())};
  int64_t stride = sizeof(double);
  for (size_t d = shape.size(); d-- > 0;) {
    e.strides[d] = stride;
    stride *= shape[d];
  }
  return e;
}

}  // namespace opguard
