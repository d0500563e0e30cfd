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
#include <unordered_set>
#include <vector>

#include "invariants/views/fields.h"
#include "invariants/views/row_maker.h"

namespace opguard {

class LoaderPasses {
 public:
  void loader(const Fields& fields);
  void batch(const RowContext& context, const Fields& fields);
  void pass(const RowContext& context, const Fields& fields);
  void set_epoch() { epochs_set_ = true; }
  // A backward pass: the loader that gave the last batch is one to train with.
  void trained();

  // Samples of the last batch, and whether its loader was made for several ranks.
  struct LastBatch {
    std::vector<uint64_t> samples;
    bool distributed = false;
    std::string sampler, place;
    uint64_t shapes = 0;
    int64_t size = -1;  // that the loader was given
    int64_t loader = -1, pass = -1;
  };
  const LastBatch& last() const { return last_; }

 private:
  struct State {
    std::string type, sampler, place;
    bool shuffled = false, distributed = false, workers = false;
    // -1: the loader does not say. `batches`: as many as a pass should give.
    int64_t batches = -1, batch_size = -1;
    int64_t pass = -1, passes_ended = 0, last_taken = -1;
    std::vector<uint64_t> samples, before;  // in order
    std::unordered_set<uint64_t> distinct;  // of samples
    bool told = false;                      // of the pass, that a sample came again
    bool trains = false;                    // a backward pass has followed one of its batches
    std::unordered_set<uint64_t> whole;     // the samples of its last pass that went to its end
    bool before_whole = false;
  };
  void end(const RowContext& context, State& state, bool ended, int64_t taken);
  std::optional<bool> apart(const State& state, bool ended) const;
  void again(const RowContext& context, State& state);

  std::map<int64_t, State> loaders_;
  LastBatch last_;
  int64_t last_loader_ = -1, trains_ = -1;
  bool epochs_set_ = false;
};

}  // namespace opguard
