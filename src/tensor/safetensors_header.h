// tensor/safetensors_header.h: the JSON of a safetensors header, and no other JSON.
//
//   {"__metadata__": {"step": "3"},
//    "out0": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}
//
// What it reads is checked for its form alone: whether bytes fit a shape, and tensors the file, is
// safetensors.cc's to say.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/safetensors.h"

namespace opguard {

struct StoredTensor {
  std::string name, dtype;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // bytes behind the header
};

// Accepts the format's objects alone, so that nesting is bounded by the grammar. Names and keys are
// unique, numbers below 2^63, at most 64 dims. False: `error` says what was expected at which byte.
bool parse_header(std::string_view text, std::vector<StoredTensor>& tensors,
                  TensorMetadata& metadata, std::string& error);

std::string format_header(const std::vector<StoredTensor>& tensors, const TensorMetadata& metadata);

// Of a text from a file: control characters as "?", at most 120 bytes.
std::string printable(std::string_view text);

}  // namespace opguard
