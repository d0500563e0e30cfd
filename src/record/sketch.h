// record/sketch.h: os1, 64 linear sums of a tensor, from which distances are told without it.
//
//   y(x) of float32 [4096, 4096]      64 numbers, 322 bytes of log
//   |y(x) - y(z)|                     about the Frobenius norm of x - z, whatever its size: a
//                                     standard deviation of 9 % (bench/sketch.py)
//   y(x) + y(z) == y(x + z)           so partial sums of ranks add up, averages divide
//   y(c * x) == c * y(x)              so a factor is seen as a factor
//   y(left half) + y(right half at its place) == y(whole)
//
// Counterexample: og1 answers only equal or not, and its sums are those of bits. Two tensors that
// differ by a rounding have og1s that have nothing in common.
//
// The source is the count sketch (Charikar, Chen, Farach-Colton 2002) with structured hashes. A
// column has its lane and its sign, a row has a rotation of the lanes and a sign. Without the
// rotation the estimate of one wrong column would have a standard deviation of 58 %.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace opguard {

inline constexpr size_t kSketchNumbers = 64;

// y[(j + rotation(r)) mod 64] += sign(r) * sign(j) * x[r][j], r the number of the row in logical
// order, j the column.
using SketchSums = std::array<double, kSketchNumbers>;

struct Sketch {
  SketchSums sums{};  // of the finite elements
  // What is not finite is counted; in `sums` it stands as zero.
  uint64_t positive_infinite = 0, negative_infinite = 0, not_a_number = 0;
  bool operator==(const Sketch&) const = default;

  bool finite() const { return positive_infinite + negative_infinite + not_a_number == 0; }
};

// Always inlined: a file that is compiled for wider vectors may leave no copy of them to others.
#define OPGUARD_ALWAYS_INLINE inline __attribute__((always_inline))

// splitmix64 of state `seed + (number + 1) * 0x9e3779b97f4a7c15` (Steele, Lea, Flood 2014).
OPGUARD_ALWAYS_INLINE uint64_t sketch_bits(uint64_t seed, uint64_t number) {
  uint64_t z = seed + (number + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Of the 64 columns from 64 * block on: bit i is set where the sign of column 64 * block + i is
// negative.
OPGUARD_ALWAYS_INLINE uint64_t sketch_column_signs(uint64_t block) {
  return sketch_bits(0x6f73312d636f6c73u, block);  // "os1-cols"
}

struct SketchRow {
  unsigned rotation;  // below 64
  bool negative;
};
OPGUARD_ALWAYS_INLINE SketchRow sketch_row(uint64_t row) {
  const uint64_t bits = sketch_bits(0x6f73312d726f7773u, row);  // "os1-rows"
  return {static_cast<unsigned>(bits >> 20 & (kSketchNumbers - 1)), bits >> 63 != 0};
}
#undef OPGUARD_ALWAYS_INLINE

// Root of the sum of squares.
double norm(const SketchSums& y);
// norm(y - factor * z).
double distance(const SketchSums& y, const SketchSums& z, double factor = 1);
// The same where it is at most `limit`; else something above, told from the first numbers that
// exceed it. Most of what is compared has nothing in common, and a quarter of it says so.
double distance_within(const SketchSums& y, const SketchSums& z, double factor, double limit);

}  // namespace opguard
