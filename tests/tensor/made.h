// tests/tensor/made.h: tensors of numbers written in a test.
#pragma once

#include <bit>
#include <cstring>
#include <random>

#include "tensor/tensor.h"

namespace opguard {

struct Made {
  std::vector<unsigned char> bytes;
  Tensor tensor;

  template <typename T>
  Made(const char* dtype, std::vector<int64_t> shape, const std::vector<T>& elements,
       const char* name = "t")
      : bytes(elements.size() * sizeof(T)) {
    if (!bytes.empty()) std::memcpy(bytes.data(), elements.data(), bytes.size());
    tensor = {name, dtype_named(dtype), std::move(shape), bytes.data()};
  }
  Made(const Made& other) : bytes(other.bytes), tensor(other.tensor) { tensor.data = bytes.data(); }
  Made& operator=(const Made&) = delete;

  template <typename T>
  T& at(size_t i) {
    return reinterpret_cast<T*>(bytes.data())[i];
  }
};

inline std::vector<float> random_floats(size_t n, uint64_t seed = 1) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(n);
  for (float& x : out) x = normal(engine);
  return out;
}

}  // namespace opguard
