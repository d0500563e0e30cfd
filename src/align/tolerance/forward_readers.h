// align/tolerance/forward_readers.h: which operators of a forward pass read a value, and which
// autograd nodes they have.
//
//   h = up(x)          readers of h's value: act, the residual's +
//   act's nodes        GeluBackward0
//
// Counterexample: what reads a value in a backward pass is no reader here, though a node's inputs
// are its forward operator's.
//
// The cost: one pass over a process's events, when it is first asked for.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "align/values/value_index.h"

namespace opguard {

class ForwardReaders {
 public:
  explicit ForwardReaders(const Run& run) : run_(run) {}

  // Numbers of events of that process, in their order.
  const std::vector<uint32_t>& of(int32_t process, const ValueKey& key) const;
  // The first of what reads the value there, of those that autograd goes through if there are
  // some; no event if nothing reads it.
  EventRef first_of(const SlotRef& value) const;
  const std::vector<uint32_t>& nodes(int32_t process, uint32_t forward) const;
  // A gradient that a node or a leaf was handed as it is.
  bool is_handed_on(int32_t process, const ValueKey& key) const;

 private:
  struct Process {
    std::unordered_map<ValueKey, std::vector<uint32_t>, ValueKeyHash> readers;
    std::unordered_map<uint32_t, std::vector<uint32_t>> nodes;
    std::unordered_set<ValueKey, ValueKeyHash> handed_on;
  };
  const Process& process(int32_t number) const;

  const Run& run_;
  mutable std::unordered_map<int32_t, Process> known_;
};

}  // namespace opguard
