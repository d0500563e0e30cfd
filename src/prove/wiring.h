// prove/wiring.h: what each operator of a folded trace reads, said without counting. That is the
// operator that wrote it last, and in which repetition of the blocks around it.
//
//   x = layer(x)    reads what the same leaf wrote one repetition before
//   its gradient    reads what the forward block wrote in the mirrored repetition
//
// The first layer of a backward pass is the last of the forward pass: hence mirrored.
//
//   layers.12.wq    an input by its name without numbers: layers.#.wq
//
// Counterexample: layer 3 of 4 and layer 3 of 126 are not the same repetition. Counted from the
// front they are, counted from the end they are not. So a fault in one middle layer of 126 is seen
// only as far as it breaks the rule that all others follow.
//
// The cost: one entry for each tensor that each node reads.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "prove/repeats.h"
#include "prove/trace.h"

namespace opguard::proving {

class Wiring {
 public:
  Wiring(const Trace& trace, const Folded& folded);
  // The first argument that another operator has written in the other trace, in words; "" where
  // both are wired alike. Both have the same form.
  std::string difference(const Wiring& other) const;

 private:
  // Where an argument comes from: a leaf, an input's name without its numbers, or a constant.
  struct Source {
    enum Kind : uint8_t { node, input, constant } kind;
    uint32_t leaf = 0;
    std::string name;
    auto operator<=>(const Source&) const = default;
  };
  // One slot: an argument of a leaf. All repetitions of the leaf share it; its tensors in a list do
  // too.
  struct Slot {
    uint32_t leaf, argument;
    auto operator<=>(const Slot&) const = default;
  };
  // A reader's repetition, and its writer's. Both point into the Folded that the Wiring was made
  // of.
  struct Read {
    const FoldedNode* reader;
    const FoldedNode* writer;  // nullptr of an input
  };
  struct Reads {
    std::vector<Read> all;
    std::set<std::string> names;  // of inputs
  };

  void read(const Slot& slot, const Source& source, const FoldedNode& reader,
            const FoldedNode* writer, const std::string& name);
  std::string place(const Slot& slot) const;
  // In how many repetitions of the longer blocks something is read.
  static size_t repetitions(const Reads& reads, const std::vector<bool>& longer);
  static std::optional<bool> read_as_lists(const Reads& a, const Reads& b, size_t block);
  static bool same_repetitions(const Reads& a, const Reads& b);

  const Trace& trace_;
  const Folded& folded_;
  std::map<Slot, std::map<Source, Reads>> slots_;
};

}  // namespace opguard::proving
