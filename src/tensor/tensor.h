// tensor/tensor.h: a tensor's elements in memory, contiguous and in row-major order.
//
//   shape [2, 3], float32     24 bytes; element [1, 0] is the fourth
//
// Counterexample: a view with strides. Whoever makes a Tensor of one has copied its elements in
// order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace opguard {

// Owns nothing: `data` belongs to whoever made it, a SafetensorsFile for one.
struct Tensor {
  std::string name;
  const Dtype* dtype = nullptr;
  std::vector<int64_t> shape;
  const unsigned char* data = nullptr;

  uint64_t count() const {
    uint64_t n = 1;
    for (int64_t d : shape) n *= static_cast<uint64_t>(d);
    return n;
  }
  uint64_t size_bytes() const { return count() * dtype->size_bytes; }
};

}  // namespace opguard
