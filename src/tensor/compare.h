// tensor/compare.h: how two tensors differ, and why that may be (docs/formats/tensors.md).
//
//   a [0.1, 0.2, 0.3]    b [0.2, 0.3, 0.1]       roll: b[i] = a[i + 1]; three of three differ
//   a 0.1                b 0.10009765625         cast: b's values are a's through bfloat16
//   a [1, 2, 3]          b [2, 4, 6]             scaled: b = 2 * a
//
// An explanation holds of every element, or of every one that differs. Counterexample: "most
// elements are rolled" is none, since a fault is an operation, and an operation leaves no
// exceptions.
//
// The cost: linear in the elements, but for sorting the hashes of moved slices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tensor/safetensors.h"
#include "tensor/tensor.h"

namespace opguard {

// Something that holds of every element of both tensors, or of every one that differs.
struct Explanation {
  // equal, signed_zero, nan_payload, nan, sign_flip, cast, scaled, filled, roll, flip, permutation,
  // element_permutation, transposed, reshaped, shift, block, run, rounding, dtype
  Explanation() = default;
  Explanation(std::string what, std::string sentence)
      : kind(std::move(what)), text(std::move(sentence)) {}

  std::string kind;
  std::string text;     // one sentence
  int dim = -1;         // roll, flip, permutation, shift: along which
  int64_t by = 0;       // roll, shift: b[i] = a[i - by]
  double factor = 0;    // scaled: b = factor * a, rounded
  std::string through;  // cast: the narrower type
  std::string side;     // cast, nan, filled: "a" or "b", whose values are so
  std::string value;    // filled
  std::vector<std::pair<int64_t, int64_t>> moved;   // permutation: index in a, in b; the first few
  std::vector<std::pair<int64_t, int64_t>> ranges;  // block: per dim, run: of the flat elements;
                                                    // first and last
  bool operator==(const Explanation&) const = default;
};

// Of two tensors of one shape everything below is known; of unlike shapes only what
// explain_places() can say.
struct Difference {
  std::string name;
  std::string dtype_a, dtype_b;
  std::vector<int64_t> shape_a, shape_b;
  bool equal = false;                    // dtype, shape and every bit
  bool elementwise = true;               // the shapes agree: what follows is known
  uint64_t elements = 0, differing = 0;  // differing: in their bits; of unlike dtypes, in value
  std::vector<int64_t> first, last;      // indices of the first and the last that differ
  std::string first_a, first_b;          // the first's values
  // Per dim: how many slices hold a difference. -1: of a dim too long to be marked slice by slice.
  //   shape [4, 8], one row differs     slices {1, 8}: one of 4 rows, all of 8 columns
  std::vector<int64_t> slices;
  uint64_t nan_a = 0, nan_b = 0;          // NaN on that side alone
  uint64_t infinite = 0;                  // an infinity on one side only, or of another sign
  uint64_t signed_zeros = 0;              // -0 against 0
  std::optional<uint64_t> max_ulp;        // floating, one dtype: numbers between, both finite
  std::optional<double> max_absolute;     // finite pairs
  std::optional<double> max_relative;     // |a - b| / max(|a|, |b|), finite pairs
  std::vector<Explanation> explanations;  // all that hold, the most telling first
};

// Linear in the elements (a permutation: in the elements, and n log n in its rows).
Difference compare_tensors(const Tensor& a, const Tensor& b);

struct FileComparison {
  std::vector<Difference> tensors;  // of the names both have, in a's order
  std::vector<std::string> only_a, only_b;
  bool equal() const;
};
FileComparison compare_files(const SafetensorsFile& a, const SafetensorsFile& b);

// One tensor's part of the answer below, lines indented by two.
std::string format_difference(const Difference& difference);

// The answer as text for people; `a` and `b`: what to call the files.
std::string format_comparison(const FileComparison& comparison, const std::string& a,
                              const std::string& b);

}  // namespace opguard
