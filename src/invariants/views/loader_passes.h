// invariants/views/loader_passes.h: what the passes over a loader gave.
//
//   pass 0   8 batches of 8, all samples distinct        complete
//   pass 1   the same samples in the same order          new_order=no
//
// The cost: the digests of two passes' samples for each loader.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "invariants/views/fields.h"
#include "invariants/views/row_maker.h"

namespace opguard {

class LoaderPasses {
 public:
  void loader(const Fields& fields);
  void batch(const Fields& fields);
  void pass(const RowContext& context, const Fields& fields);
  void set_epoch() { epochs_set_ = true; }

  // Samples of the last batch, and whether its loader was made for several ranks.
  struct LastBatch {
    std::vector<uint64_t> samples;
    bool distributed = false;
    std::string sampler, place;
    uint64_t shapes = 0;
  };
  const LastBatch& last() const { return last_; }

 private:
  struct State {
    std::string type, sampler, place;
    bool shuffled = false, distributed = false, workers = false, drop_last = false;
    int64_t length = -1, batches = -1, batch_size = -1;
    int64_t pass = -1, passes_ended = 0, last_taken = -1;
    std::vector<uint64_t> samples, before;  // in order
    bool before_whole = false;
  };
  void end(const RowContext& context, State& state, bool ended, int64_t taken);

  std::map<int64_t, State> loaders_;
  LastBatch last_;
  bool epochs_set_ = false;
};

}  // namespace opguard
