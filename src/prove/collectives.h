// prove/collectives.h: where ranks meet. Every member of a group has to come with the same kind.
#pragma once

#include <string>
#include <vector>

#include "prove/rank.h"

namespace opguard::proving {

// What a plan does wrong whatever its numbers are: ranks that wait for ever, unequal collectives.
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

// One rank's part of it.
struct Meeting {
  Meets kind;
  std::vector<uint32_t> group;  // ranks of the world
  std::vector<Tensor> inputs, outputs;
  std::string reduction;  // sum, avg, max, min, prod
  int64_t root = 0;       // a place in the group; of send and receive the other's
  int64_t tag = 0;
  std::vector<int64_t> output_sizes, input_sizes;  // of all_to_all, in rows
};

// Whether a node is one.
bool meets(const Node& node);
// "c10d.allreduce_" and the like: those that have a meaning.
std::vector<std::string> collective_names();
// Throws Unprovable for one that is not among them.
Meeting meeting_of(const Node& node);
// Done by all at once; `ranks` and `parts` in the group's order. Throws Refuted for sizes that do
// not fit.
void meet(Terms& terms, const std::vector<Rank*>& ranks, const std::vector<Meeting>& parts);

}  // namespace opguard::proving
