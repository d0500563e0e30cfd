// align/check/replay.h: did each rank compute what its replay computes? Which one did not?
//
//   recorded on 8 ranks   step 1204   rank 5 gives grad:up.weight d1f0 to the sum, all get 77aa
//   replayed              step 1204   rank 5 gives grad:up.weight 03c9,            all get 5e12
//   -> rank 5 computed otherwise; the others received it
//
// A replay is the same program on the same data, from a checkpoint, on other machines. What ranks
// give to each other, their losses and what their steps leave is enough (mode sdc). Values are
// paired by step, micro-batch, boundary and name; a bucket may hold other parameters than before.
//
// Counterexample: another program, or another layout. Its values have other names: `align`.
//
// The cost: one pass over the collectives, losses and steps of both logs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "record/event_ref.h"
#include "record/record.h"

namespace opguard {

enum class ReplayRole : uint8_t {
  same,       // everything compared is equal
  origin,     // it gave another value to the others, or made one of none that differ
  received,   // what the others gave it was another
  exchanged,  // it received another result, of which every rank gave the same as in the replay
  unknown,    // nothing of it could be compared
};

struct ReplayRank {
  int32_t rank = 0;
  ReplayRole role = ReplayRole::unknown;
  uint64_t compared = 0;  // values
  uint64_t alone = 0;     // values that one run alone has in steps of both
  // Of the first that differs.
  uint32_t step = 0, micro_batch = 0;
  EventRef event{};  // of the recorded run
  std::string name;  // of the tensor: "grad:0.weight"
  std::string host;  // of the recorded run
  bool operator==(const ReplayRank&) const = default;
};

struct ReplayCheck {
  std::vector<ReplayRank> ranks;               // by rank
  uint32_t first_step = kNone, last_step = 0;  // compared; kNone: none
};

ReplayCheck check_replay(const Run& recorded, const Run& replayed);

}  // namespace opguard
