// invariants/views/rank_views.h: what several ranks hold and do, compared step by step.
//
//   step 3   fc1.weight   5f1c on rank 0, 5f1c on rank 1        equal=yes
//   step 4   fc1.weight   77aa on rank 0, 12d0 on rank 1        was_equal=yes equal=no
//
// Ranks that held equal values stay together: those of a data parallel group do, in whatever
// layout. Counterexample: two stages of a pipeline that were seeded alike begin equal. So equality
// counts once it has lasted two updates, or where most parameters of the model are equal.
//
// A step is compared when all ranks have ended it. The cost: one step's digests of every rank, of
// more steps where ranks are apart.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "invariants/views/row_maker.h"

namespace opguard {

// A parameter of one rank after a step.
struct RankParameter {
  // Digests: after the step, as it began, and of the gradient that it used. `split`, `placed`:
  // ranks hold parts of it, it is a DTensor. `constant`: all elements were equal when it was first
  // met. `shape` is a digest.
  std::optional<uint64_t> value, before, gradient;
  bool has_grad = false, constant = false, split = false, placed = false, requires_grad = false;
  bool held = false, finite = true;
  uint64_t shape = 0;
  size_t dims = 0;
  std::string module, module_words, attr, place;
};

// An optimizer's step.
struct RankOptimizer {
  std::vector<double> lr{};           // of its groups
  std::optional<uint64_t> noise{};    // the generators' states as it begins
  std::optional<double> clip_norm{};  // what the only clipping before it found
  std::string type{}, place{}, clip_place{}, lr_place{};
};

struct RankCall {
  std::string module, type;  // module: for the rule, "Linear" or "user"
  uint64_t shapes = 0;
  bool training = false, grad = false;
  std::string place, words;  // words: shapes
};

struct RankBatch {
  // A digest of each sample. `shapes`: of what the batch is made of.
  std::vector<uint64_t> samples;
  bool distributed = false;
  std::string sampler, place;
  uint64_t shapes = 0;
  std::pair<int64_t, int64_t> pass{-1, -1};  // its loader's number, and the pass over it
};

struct RankCollective {
  std::string function, dtype, place;
  std::vector<int64_t> shape;
  // A digest of what the call left; none where it was not waited for.
  std::optional<uint64_t> left;
  bool reads_alike = false;  // all ranks are left with the same value
};

struct RankMessage {
  bool sent = false;
  // Ranks. `number` counts the messages of this pair and tag.
  int32_t from = 0, to = 0;
  int64_t tag = 0, number = 0;
  std::string dtype, place;
  std::vector<int64_t> shape;
  std::optional<uint64_t> value;
};

class RankViews {
 public:
  RankViews(CellTexts& texts, RowSink& sink) : texts_(texts), sink_(sink) {}

  // A rank is there; a process that began later takes the place of one that ended.
  void joined(int32_t rank, int32_t world);
  void parameter(int32_t rank, uint32_t step, const std::string& name, RankParameter parameter);
  void call(int32_t rank, uint32_t step, const std::string& module, RankCall call);
  void batch(int32_t rank, uint32_t step, RankBatch batch);
  void optimizer(int32_t rank, uint32_t step, RankOptimizer optimizer) {
    ranks_[rank].steps[step].optimizers.push_back(std::move(optimizer));
  }
  void collective(int32_t rank, uint32_t step, const std::string& group, int64_t sequence,
                  RankCollective collective);
  void message(uint32_t step, RankMessage message);
  void wrapped(int32_t rank) { ranks_[rank].wrapped = true; }
  void reduced(int32_t rank, uint32_t step) { ranks_[rank].steps[step].reduced = true; }
  void sent(int32_t rank, uint32_t step) { ranks_[rank].steps[step].sent = true; }
  // The rank's step is over: what all have ended is compared.
  void step_ended(int32_t rank, uint32_t step, uint64_t order, uint64_t event);
  void process_ended(int32_t rank);
  void finish();

 private:
  struct Step {
    // By name.
    std::map<std::string, RankParameter> parameters;
    std::map<std::string, std::vector<RankCall>> calls;
    std::vector<RankBatch> batches;
    std::vector<RankOptimizer> optimizers;
    bool reduced = false, sent = false;
    uint64_t order = 0, event = kNone;
  };
  struct Rank {
    std::map<uint32_t, Step> steps;
    uint32_t ended = 0;  // steps before this one
    bool over = false, wrapped = false;
  };
  // Of a parameter on all ranks, over the steps so far.
  struct History {
    bool met = false;
    uint32_t equal = 0, gradients_equal = 0;  // updates in a row
    std::vector<uint32_t> classes;            // by rank: which ranks were equal
    std::vector<uint32_t> gradient_classes;
    std::vector<uint32_t> began;  // of the first step, where it promises to stay so
  };
  using Group = std::pair<std::string, int64_t>;

  void compare_ready();
  void compare(uint32_t step);
  void compare_parameters(uint32_t step, const std::vector<std::pair<int32_t, Step*>>& ranks);
  void compare_calls(uint32_t step, const std::vector<std::pair<int32_t, Step*>>& ranks);
  void compare_optimizers(uint32_t step, const std::vector<std::pair<int32_t, Step*>>& ranks);
  void compare_batches(uint32_t step, const std::vector<std::pair<int32_t, Step*>>& ranks);
  void compare_collectives(uint32_t before);
  void compare_messages();
  RowContext context(uint32_t step, const Step& first);

  CellTexts& texts_;
  RowSink& sink_;
  std::map<int32_t, Rank> ranks_;
  // How many ranks there are, as the process groups say.
  int32_t world_ = 0;
  uint32_t compared_ = 0;  // steps before this one
  std::map<std::string, History> histories_;
  uint32_t steps_apart_ = 0;  // in a row, in which all ranks had other random states
  // Of the pass that goes on: what each rank was given, and by pairs of ranks how much of it both.
  struct PassSamples {
    std::pair<int64_t, int64_t> pass{-1, -1};
    std::map<int32_t, std::unordered_set<uint64_t>> given;
    std::map<std::pair<int32_t, int32_t>, size_t> shared;
  };
  PassSamples pass_;
  // Adds a step's batches -> of a pair of ranks, how many samples both were given in this pass.
  void follow_pass(const std::vector<std::pair<int32_t, const RankBatch*>>& batches);
  std::vector<uint32_t> replicas_;  // by rank: which ranks hold the same model
  std::map<Group, std::vector<std::pair<int32_t, std::pair<uint32_t, RankCollective>>>>
      collectives_;
  std::map<std::tuple<int32_t, int32_t, int64_t, int64_t>,
           std::vector<std::pair<uint32_t, RankMessage>>>
      messages_;
  std::unordered_set<uint64_t> left_alike_;  // by collectives before the first step
  bool together_ = false;  // in this step: replicas, or the ranks have reduced something
  uint64_t order_ = 0;
};

}  // namespace opguard
