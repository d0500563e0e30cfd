// bench/cut_values.h: tensors that ranks of a made-up run hold pieces of, and their sketches.
//
//   [2, 16, 64], cut along 2, rank 1 of 4      columns 16-31 of the whole
//   [2, 16, 64], parts of a sum, 4 ranks       as many tensors, which add up to the whole; each is
//                                              larger than that
//
// An element is a function of the tensor's number and of its index in the whole, so nothing is
// kept. The cost: two mixes an element.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "record/format.h"
#include "record/sketch_code.h"
#include "runtime/fingerprint/slices.h"

namespace opguard::bench {

using Shape = std::vector<int64_t>;

constexpr int kParts = -2, kWhole = -1;  // as a dimension that is cut
inline uint64_t scrambled(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

inline float unit_number(uint64_t x) {
  return static_cast<float>(static_cast<int32_t>(scrambled(x))) * 0x1p-31f;
}

// A tensor of the whole model, and the dimension that tensor parallelism cuts; kParts: ranks hold
// parts of a sum.
struct Value {
  uint64_t id = 0;
  Shape shape;
  int cut = kWhole;
  double scale = 1;
};

struct Layout {
  uint32_t layers, micro_batches;  // of the model, of each data-parallel rank
  uint32_t tp = 1, dp = 1, pp = 1;
  uint32_t ranks() const { return tp * dp * pp; }
};

// Where one process stands; the reference is the one of a layout of 1.
struct Place {
  uint32_t tensor = 0, data = 0, stage = 0;
};

// What one process holds of them, and of which pieces it has sketches.
struct CutValues {
  Layout layout;
  Place place;
  uint64_t jitter = 0;  // a seed; 0: exact
  std::vector<Shape> locals{};
  std::vector<int64_t> outer{};
  int64_t world = 1;

  int64_t here(const Value& value, size_t dim) const {
    return static_cast<int>(dim) == value.cut ? value.shape[dim] / layout.tp : value.shape[dim];
  }

  Shape local(const Value& value) const {
    Shape shape = value.shape;
    for (size_t d = 0; d < shape.size(); ++d) shape[d] = here(value, d);
    return shape;
  }

  // An element of the whole, as this process has it.
  float element(const Value& value, uint64_t index) const {
    float x = unit_number(value.id ^ index * 0xd6e8feb86659fd93u);
    if (jitter != 0)
      x += x * 0x1p-24f * unit_number(scrambled(value.id + jitter) + index * 0x9e3779b97f4a7c15u);
    x *= static_cast<float>(value.scale);
    if (value.cut != kParts || layout.tp == 1) return x;
    // Parts that add up to it: what one rank has more, the next has less.
    const auto part = [&](uint32_t t) {
      return unit_number(value.id + index * 97 + t % layout.tp);
    };
    return x / static_cast<float>(layout.tp) + part(place.tensor) - part(place.tensor + 1);
  }

  std::vector<float> elements(const Value& value) const {
    const Shape shape = local(value);
    size_t count = 1;
    for (const int64_t n : shape) count *= static_cast<size_t>(n);
    std::vector<float> all(count);
    for (size_t i = 0; i < count; ++i) {
      uint64_t index = 0, rest = i, scale = 1;
      for (size_t d = shape.size(); d-- > 0;) {
        uint64_t at = rest % static_cast<uint64_t>(shape[d]);
        rest /= static_cast<uint64_t>(shape[d]);
        if (static_cast<int>(d) == value.cut) at += place.tensor * static_cast<uint64_t>(shape[d]);
        index += at * scale;
        scale *= static_cast<uint64_t>(value.shape[d]);
      }
      all[i] = element(value, index);
    }
    return all;
  }

  std::string code_of(const Value& value) const {
    const std::vector<float> all = elements(value);
    Elements e{all.data(), sizeof(float), local(value), {}};
    e.strides.resize(e.shape.size());
    int64_t stride = sizeof(float);
    for (size_t d = e.shape.size(); d-- > 0; stride *= e.shape[d]) e.strides[d] = stride;
    std::vector<Shape> cutting;
    for (const Shape& shape : locals)
      if (cuts(e.shape, shape, world)) cutting.push_back(shape);
    const auto sets = sketch_sets(e, FloatType::float32, {cutting, outer});
    std::string code;
    format::put_varint(code, sets.size());
    for (const SketchSet& set : sets) put_sketch_set(code, set, kWideSketch);
    return code;
  }
};

}  // namespace opguard::bench
