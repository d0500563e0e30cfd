// align/pair/flow_pairs.h: partners told by data flow, where order alone is wrong or has nothing to
// say.
//
// A pairing that keeps the order must leave one of two operators alone that changed places. Where
// values differ it may take an inserted operator for the one beside it. What an operator reads was
// made, and what it leaves is read, by operators that have partners of their own. In each run its
// own values and memory blocks tell by whom. So two operators stand at the same place of the
// computation, or do not.
#pragma once

#include <cstdint>
#include <vector>

#include "align/pair/flow_graph.h"
#include "align/pair/sequence.h"

namespace opguard {

struct FlowMatch {
  uint32_t a, b;  // positions in the sequences
  bool moved;     // out of the order of the others
  bool operator==(const FlowMatch&) const = default;
};

// `ordered` (strictly increasing on both sides) with pairs that the flow contradicts taken apart.
// Events without a partner get one of the same boundary, arguments and shapes, at the same place of
// the flow. Or it has the same values, or is alone of its kind near by. By a; those not moved
// increase in b. Linear: events are looked at in stretches, pairs across two stretches are not
// looked for.
std::vector<FlowMatch> pair_by_flow(const TokenSequence& a, const TokenSequence& b,
                                    const Matches& ordered);

}  // namespace opguard
