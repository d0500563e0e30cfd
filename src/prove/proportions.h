// prove/proportions.h: whether a number of a plan has grown as its dims have.
//
//   hidden 32 -> 16384, tp 8 -> 8
//   [4, 32] -> [4, 16384]    yes: it grew by 512, as hidden has
//   [4, 32] -> [4, 4096]     yes where some product of dims grew by 128, else no
//
// The numbers are compared by how much they grew, so a constant factor in them is free.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "prove/repeats.h"
#include "prove/trace.h"

namespace opguard::proving {

class Proportions {
 public:
  using Dims = std::map<std::string, int64_t>;
  // The two ranks stand in the same place of their meshes.
  Proportions(const Dims& reduced, const Dims& full, uint32_t small_rank, uint32_t full_rank);

  // Whether it is the same number, or grew as a product of dims. `beside`: or is one beside such a
  // product, as the last index is.
  bool follows(double small, double full, bool beside) const;
  // The first number of a trace that does not, in words; "" where all do.
  std::string difference(const Trace& small, const Folded& folded_small, const Trace& full,
                         const Folded& folded_full) const;

 private:
  std::string uneven(const Folded& folded_small, const Trace& full, const Folded& folded) const;
  bool grew(double small, double full) const;

  uint32_t small_rank_, full_rank_;
  std::vector<double> growths_;  // logarithms, in order
};

}  // namespace opguard::proving
