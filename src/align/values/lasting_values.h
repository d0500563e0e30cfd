// align/values/lasting_values.h: tensors that outlive the step they were made in: averages of
// weights, caches, a loss scale.
//
//   step 0   ema.lerp_(w, 0.1)     leaves block 7, which nobody writes over in step 0
//   step 1   ema.lerp_(w, 0.1)     reads block 7: what step 0 left there is carried on
#pragma once

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "align/values/kept_values.h"

namespace opguard {

// What memory carries from one step into a later one, in one process.
class LastingValues {
 public:
  explicit LastingValues(const ProcessLog& log);

  // What an event left in a block that somebody reads in a later step than it was written in.
  // Nobody wrote over it within its own step. The last step's counts like any other's: a program
  // that ran on would read it.
  bool left(uint32_t event, uint32_t block) const {
    return blocks_.contains(block) && !written_over_.contains(key(event, block));
  }

 private:
  // What an event left in a block.
  struct Remainder {
    uint32_t event, step;
    uint64_t begin, end;  // addresses
  };
  static uint64_t key(uint32_t event, uint32_t block) { return uint64_t{block} << 32 | event; }
  void read(const ProcessLog& log, const Event& event, const EventSlots& slots);
  void write(const ProcessLog& log, uint32_t index, const Event& event, const EventSlots& slots);

  std::unordered_set<uint32_t> blocks_;
  std::unordered_set<uint64_t> written_over_;                       // by key()
  std::unordered_map<uint32_t, std::vector<Remainder>> remainder_;  // by block
};

// Of two processes, each made when asked for: one pass over its log.
class LastingPair {
 public:
  LastingPair(const ProcessLog& a, const ProcessLog& b) : logs_{&a, &b} {}
  const LastingValues& of(int side) {
    if (!made_[side]) made_[side].emplace(*logs_[side]);
    return *made_[side];
  }

 private:
  const ProcessLog* logs_[2];
  std::optional<LastingValues> made_[2];
};

// What an operator of both runs leaves in memory that a later step reads before anybody writes it
// again.
KeptComparison compare_lasting(const Timeline& timeline, const ProcessPair& both,
                               const HiddenRecords& hidden, LastingPair& lasting);

// A tensor that both runs made, and one of them alone keeps writing: an average of weights that the
// other never updates. What it holds as a step ends counts if the other run holds that nowhere.
std::optional<ModelDifference> lasting_of_one_run(const Timeline& timeline, const ProcessPair& both,
                                                  const HiddenRecords& hidden, LastingPair& lasting,
                                                  const ValueIndex& index_a,
                                                  const ValueIndex& index_b);

}  // namespace opguard
