// prove/proportions.h: whether a number of a plan has grown as its dims have.
//
//   hidden 32 -> 16384, tp 8 -> 8
//   [4, 32] -> [4, 16384]    yes: it grew by 512, as hidden has
//   [4, 32] -> [4, 4096]     yes where some product of dims grew by 128, else no
//
// The numbers are compared by how much they grew, so a constant factor in them is free: 3 hidden
// grows as hidden.
//
// Counterexample: a sum of dims, such as hidden + heads, grows as no product does, and counts as a
// difference. Only one is allowed beside a product: hidden - 1, as the last index is.
//
// The cost: all growths that at most five steps of dims make are kept, sorted; a number is looked
// up among them.
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
  // Of repetitions that only the full trace has: the first number that is neither an end's nor in
  // line between the ends.
  std::string uneven(const Folded& folded_small, const Trace& full, const Folded& folded) const;
  // Whether some product of dims, or its root, grew as much. Signs have to agree; zero grows to
  // zero.
  bool grew(double small, double full) const;

  uint32_t small_rank_, full_rank_;
  std::vector<double> growths_;  // logarithms, in order
};

}  // namespace opguard::proving
