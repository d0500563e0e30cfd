// prove/repeats.h: a trace with its repetitions folded, so that 4 layers and 126 can be compared.
//
//   a b c b c b c d     becomes     a (b c)x3 d
//
// Each node then has a leaf: its place in the folded trace. It says in which repetition of each
// enclosing block it runs. The second c is leaf 2, at [1] of [3]. Blocks nest: layers within
// micro-batches.
//
//   a b b c a b b c     becomes     (a (b)x2 c)x2     the third b is leaf 1, at [1, 0] of [2, 2]
//
// Counterexample: a block that runs once is none. So one layer and two have different forms, though
// only their number differs. Two and three have one form.
//
// The cost: each length from 1 to half of the trace looks at all nodes once. A block that is folded
// makes the trace shorter, and lengths begin again at 1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace opguard::proving {

struct FoldedNode {
  uint32_t leaf = 0;
  std::vector<uint32_t> at, of;  // one an enclosing block, outermost first
};

struct Folded {
  std::vector<FoldedNode> nodes;  // in the order of the trace
  std::vector<uint32_t> labels;   // of leaves
  // "0 (1 2)x 3" of labels, without how often: equal texts are equal traces but for their counts.
  std::string form;
  // How often each block runs, in the order of the form; and how many leaves it has.
  std::vector<uint32_t> counts, lengths;
};

// Labels are equal where nodes are alike but for their numbers (full_dims.cc).
Folded folded(const std::vector<uint32_t>& labels);

}  // namespace opguard::proving
