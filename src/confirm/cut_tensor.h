// confirm/cut_tensor.h: the piece of a reference's tensor that one rank of a candidate holds.
//
//   [8, 64], grid of [4, 64], piece 1                  rows 4-7
//   [8, 64], halves of [4, 64] along 0, pieces 0, 3    rows 0-1 and 6-7
//   a part of a sum, not the first rank of it          zeros
//   float32, for a rank that computes in bfloat16      rounded to the nearest
//
// The pieces are numbered as record/sketch_code.h has them. Counterexample: of integers no other
// type is made; that is refused.
//
// The cost: the piece is copied once, and once more where it is of another type.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "align/tolerance/placement.h"
#include "tensor/tensor.h"

namespace opguard {

struct TensorCut {
  SketchSetKind set = SketchSetKind::whole;
  uint8_t dim = 0;             // of halves
  std::vector<int64_t> local;  // of the piece
  HeldPieces pieces{};
  bool zeros = false;  // another rank has this part of the sum
  bool operator==(const TensorCut&) const = default;
};

// The bytes of the piece as `type`, row-major. None: the shapes do not divide, there is no such
// piece, or the types cannot be converted.
std::optional<std::vector<unsigned char>> cut_tensor(const Tensor& whole, const TensorCut& cut,
                                                     const Dtype& type);

}  // namespace opguard
