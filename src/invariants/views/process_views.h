// invariants/views/process_views.h: the observations of one process -> rows of the views.
//
//   ProcessViews views(context, strings);
//   for each observation: views.add(observation, schemas);
//   views.finish();
//
// Rows come as soon as they can be told: those of a step while it runs. What compares ranks is
// handed to RankViews.
//
// The cost: state for each object of the process (model.h), for each loader one pass's digests.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "invariants/views/call_sequence.h"
#include "invariants/views/loader_passes.h"
#include "invariants/views/model.h"
#include "invariants/views/rank_views.h"
#include "invariants/views/row_maker.h"
#include "record/observation.h"

namespace opguard {

class ProcessViews {
 public:
  // `strings`, of the log, and `ranks` outlive it.
  ProcessViews(CellTexts& texts, RowSink& sink, const std::vector<std::string>& strings,
               RankViews& ranks, int32_t rank);

  // In the order of the log. `schemas` may have grown since.
  void add(const Observation& observation, std::span<const ObservationSchema> schemas);
  // The process has ended, or is believed to have.
  void finish();

 private:
  void group(const Fields& fields);
  void call(const Fields& fields);
  void root_call(const Fields& fields, const ObservedModule& module, const ObservedForm& form);
  // A call of the library, by its name: backward, zero_grad, clip_grad_norm, seed ...
  void api(const Fields& fields);
  void backward(const Fields& fields);
  void parameter(const Fields& fields);
  void update(const Fields& fields);
  void optimizer(const Fields& fields);
  void random(const Fields& fields);
  void random_rows();
  void criterion(const Fields& fields);
  void save(const Fields& fields);
  void load(const Fields& fields);
  void collective(const Fields& fields);
  void p2p(const Fields& fields);
  void told(const Fields& fields);
  void init_rows();

  // A parameter's update waits for the optimizer's own observation, which says the learning rate.
  struct Update {
    int64_t parameter = -1;
    std::optional<uint64_t> value, before, gradient;
    std::string gradient_dtype;
    std::optional<double> gradient_norm, norm;
    std::optional<bool> changed, training, as_loaded;
  };
  struct OptimizerState {
    bool backward = false;  // since its last step
    bool stepped = false;
    bool loaded = false;  // its state was
    std::string made;     // where
  };
  // A dropout without gradients; its row is complete when it is known what is trained around it.
  struct RandomRow {
    std::string function, place, detail;
    int64_t module = -1;
    RowContext where;
    bool grad = true;
    std::optional<bool> on{}, module_training{}, again{}, p_same{}, draws_same{};
  };
  // A backward pass; its row is complete when it is known where its gradients went.
  struct BackwardRow {
    std::string place;
    RowContext where;
    std::optional<bool> training{}, wants{}, finite{}, stale{};
    bool forward_before = false, accumulates = false;
    int64_t root = -1;  // the model of the last forward that it may go through
  };
  // `frozen`: nobody trains the model around it, where that is known.
  void random_row(const RandomRow& held, std::optional<bool> frozen);
  void parameter_row(const Update& update, const Fields& optimizer, double lr);
  void buffer_row(const Update& update);
  void optimizer_row(const Fields& fields, double lr);
  void rank_step(const Fields& fields);
  void backward_rows(std::optional<bool> reached);

  const std::vector<std::string>& strings_;
  RankViews& ranks_;
  RowContext context_;
  Kinds kinds_;
  ObservedModel model_;
  CallSequence sequence_;
  LoaderPasses passes_;
  std::map<int64_t, OptimizerState> optimizers_;
  std::set<int64_t> known_optimizers_;  // those that have not stepped too
  bool masters_ = false;  // an optimizer holds what no model does: copies of parameters
  // Until their optimizer's observation comes; then rows.
  std::vector<Update> updates_;
  std::vector<BackwardRow> backwards_;
  std::vector<RandomRow> randoms_;
  // By module, generators' states at dropouts of forward passes since the last step.
  std::set<std::pair<int64_t, uint64_t>> drawn_;
  // By module and place, the probabilities of a dropout in the first step that has it.
  struct Probabilities {
    uint32_t step = 0;
    std::set<double> met;
  };
  std::map<std::pair<int64_t, std::string>, Probabilities> probabilities_;
  std::set<int64_t> schedulers_;
  std::string seed_place_;
  // The only clipping since the last step: which norm is left, and where.
  std::optional<double> clipped_;
  uint32_t clips_ = 0;
  std::string clip_place_;
  std::optional<double> clip_norm_;  // before it
  std::string scheduler_place_;
  bool within_step_ = false;  // an optimizer's step has begun and not ended
  bool mode_shown_ = false;   // in the root's call: a dropout was on, or a batch's statistics taken
  // Layers that autocast casts, called with gradients since the last backward pass.
  bool layers_called_ = false, layers_cast_ = false;
  std::string layers_place_;  // where the root was called that has them
  std::string rest_loaded_;   // where the state of a scheduler or a scaler was loaded
  // Times that a function has filled a parameter, and where it did last.
  struct Filled {
    uint32_t times = 0;
    bool after_load = false;
    std::string place;
  };
  std::map<int64_t, std::map<std::string, Filled, std::less<>>> fills_;
  // Parameters of one root that began with the same value: by root and digest.
  std::map<std::pair<int64_t, uint64_t>, std::vector<int64_t>> began_;
  std::map<uint64_t, std::vector<int64_t>> began_anywhere_;  // the same of all roots
  std::string last_step_place_;
  std::optional<double> last_loss_;
  double largest_gradient_ = 0;  // of the step under way
  uint32_t losses_alike_ = 0;
  bool trained_before_ = false, train_called_ = false, last_root_training_ = true;
  bool forward_for_gradients_ = false, several_roots_ = false;
  bool grouped_ = false;  // one of several ranks
  int64_t first_root_ = -1, last_root_ = -1;
};

}  // namespace opguard
