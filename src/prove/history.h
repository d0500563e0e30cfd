// prove/history.h: what each node of a run read and wrote, and whom it met: the run once more,
// kept.
//
//   of({rank 1, node 40})   reads  storage 5 [2, 4]: the elements that were in it before the node
//                           writes storage 9 [2, 4]: those that are in it after
//                           met    rank 0's node 38, of an all-reduce
//
// Only a refutation needs it, to say where it went wrong. It costs four bytes an element that an
// operator reads or writes.
//
// Counterexample: trace.h has the same tensors for each node, without what was in them. Of memory
// that is written again, only the history says what a reader saw.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "prove/rank.h"

namespace opguard::proving {

// A node of a rank, both by number.
struct NodeAt {
  uint32_t rank = 0, node = 0;
  auto operator<=>(const NodeAt&) const = default;
};

// A tensor and what was in it.
struct Held {
  Tensor tensor;
  Array value;
};

// A node as it ran.
struct Moment {
  std::vector<Held> reads, writes;  // of a view, what it shows counts as written
  std::vector<NodeAt> met;          // the others of a collective; who sent what was received
  uint64_t order = 0;               // over all ranks
};

class History {
 public:
  // Of ranks that have not run. Their traces have to outlive it.
  explicit History(const std::vector<Rank>& ranks);

  // Before and after a rank's node.
  void arrive(Rank& rank);
  void leave(Rank& rank);
  void meet(NodeAt at, NodeAt other) { of(at).met.push_back(other); }
  // What a receive of the rank's wrote, which may be after it was left, and who sent it.
  void receive(Rank& rank, uint32_t node, NodeAt sender);

  Moment& of(NodeAt at) { return moments_[at.rank][at.node]; }
  const Moment& of(NodeAt at) const { return moments_[at.rank][at.node]; }
  const std::vector<std::vector<Moment>>& ranks() const { return moments_; }

  // The last node before one that wrote memory of a tensor; a view of it does not count. -1: none.
  // Storages are compared, not elements: a write beside the tensor counts as well.
  int64_t writer(NodeAt before, const Tensor& tensor) const;
  // The last node before one that gave just this tensor, be it a view. -1: none. Of x.t() @ w the
  // writer is who made x, the giver is the t().
  int64_t giver(NodeAt before, const Tensor& tensor) const;
  // The first of these: where a tensor that is changed in place began. -1: none.
  int64_t first_giver(NodeAt before, const Tensor& tensor) const;

 private:
  std::vector<std::vector<Moment>> moments_;
  std::vector<const Trace*> traces_;
  uint64_t order_ = 0;
};

}  // namespace opguard::proving
