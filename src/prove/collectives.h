// prove/collectives.h: where ranks meet. Every member of a group has to come with the same kind.
//
//   all_reduce by sum, group 2 0     rank 2 has [a b], rank 0 has [c d]: both get [a + c, b + d]
//   all_gather, group 2 0            both get [a b c d]: the group's order, not that of the ranks
//   reduce_scatter, group 2 0        rank 2 gets [a + c], rank 0 gets [b + d]
//   reduce to the group's first      rank 2 gets the sum; what rank 0 has then nobody may read
//
// c10d's, the functional ones and the coalesced ones are spellings of these kinds. A Meeting is
// what is left of a node without its spelling.
//
// Counterexample: the order in which a backend adds up. It changes the rounding, and not the sum
// over the reals.
#pragma once

#include <string>
#include <vector>

#include "prove/rank.h"

namespace opguard::proving {

// What a plan does wrong whatever its numbers are: ranks that wait for ever, unequal collectives.
// Beside Unprovable, which only says that nothing is known.
class Refuted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class Meets {
  all_reduce,
  reduce,
  all_gather,
  all_gather_list,
  reduce_scatter,
  reduce_scatter_list,
  broadcast,
  all_to_all,
  all_to_all_list,
  scatter,
  gather,
  barrier,
  send,
  receive,
};
const char* name_of(Meets kind);
bool reduces(Meets kind);

// One rank's part of it. Of scatter, gather and the kinds with _list in their names, inputs or
// outputs are one tensor for each rank of the group. Of the others each entry is one of several
// collectives that were coalesced.
struct Meeting {
  Meets kind;
  std::vector<uint32_t> group;  // ranks of the world
  std::vector<Tensor> inputs, outputs;
  std::string reduction;  // sum, avg, max, min, prod
  int64_t root = 0;       // a place in the group; of send and receive the other's
  int64_t tag = 0;
  std::vector<int64_t> output_sizes, input_sizes;  // of all_to_all, in rows
};

// Whether a node is one. wait_tensor and the like are none: they have no meaning between ranks.
bool meets(const Node& node);
// "c10d.allreduce_" and the like: those that have a meaning.
std::vector<std::string> collective_names();
// Throws Unprovable for one that is not among them.
Meeting meeting_of(const Node& node);
// Done by all at once; `ranks` and `parts` in the group's order. Of one kind, which the caller has
// seen to. Throws Refuted for sizes, types, roots and reductions that do not fit.
void meet(Terms& terms, const std::vector<Rank*>& ranks, const std::vector<Meeting>& parts);

}  // namespace opguard::proving
