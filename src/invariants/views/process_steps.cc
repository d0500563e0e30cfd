// Backward passes and optimizers' steps: rows of ProcessViews.
//
//   api backward                                a row of `loss`, at once
//   update fc.weight, update fc.bias            none yet
//   optimizer SGD, lr 0.1                       backward, optimizer, two of `parameter`
//
// Everything of a step waits for the optimizer's own observation, which comes last and says the
// learning rate.
//
// Counterexample: a program that makes gradients without a backward pass, by torch.func. Columns
// that ask for one are unknown then, and not "no".
//
// The cost: a step's updates, and its backward passes, until the step ends.
#include <cmath>

#include "invariants/views/process_views.h"

namespace opguard {

namespace {

// Two ways to add the same squares: clipping's and the step's.
constexpr double kNearNorm = 0.02;
// A loss that is the same to the last bit in so many backward passes is stuck.
constexpr uint32_t kAlike = 3;

}  // namespace

void ProcessViews::api(const Fields& fields) {
  std::string_view name = fields.text(field::api_name);
  std::string_view place = fields.text(field::api_place);
  // Each name stands in docs/formats/observations.md with what its number, flag and result are.
  if (name == "backward") return backward(fields);
  if (name.starts_with("init.")) {
    Filled& filled = fills_[fields.integer(field::api_object).value_or(-1)][std::string(name)];
    ++filled.times;
    filled.after_load = filled.after_load || fields.yes(field::api_flag).value_or(false);
    filled.place = place;
    return;
  }
  if (name == "optimizer") {
    optimizers_[fields.integer(field::api_object).value_or(-1)].made = place;
    return;
  }
  if (name == "zero_grad") {
    const auto object = fields.integer(field::api_object);
    const ObservedModule* module = model_.module_at(object);
    // The number is of an optimizer or of a module, and both count from 0: the type tells.
    const bool of_module = module && module->type == fields.text(field::api_type);
    if (object && !of_module) known_optimizers_.insert(*object);
  }
  // A data parallel wrapper is made: from now on ranks hold the same.
  if (name == "replicate" && grouped_) ranks_.wrapped(context_.rank);
  if (name == "set_epoch") passes_.set_epoch();
  if (name == "train" || name == "eval") train_called_ = train_called_ || name == "train";
  if (name == "seed") seed_place_ = place;
  if (name == "scheduler") {
    schedulers_.insert(fields.integer(field::api_object).value_or(-1));
    scheduler_place_ = place;
  }
  if (name == "step.begin") within_step_ = true;
  // Gradients that no step has used are thrown away here. LBFGS calls its closure within a step,
  // with a zero_grad and a backward pass each time: it has used them.
  if (name == "zero_grad" && !within_step_ && fields.real(field::api_number).value_or(0) > 0)
    backward_rows(false);
  if (name.starts_with("clip_grad")) {
    const auto bound = fields.real(field::api_number), before = fields.real(field::api_result);
    ++clips_;
    // A second clipping makes the norm unknown: optimizer_row() wants clips_ to be 1.
    clipped_.reset();
    if (fields.text(field::api_type) == "norm 2" && bound && before && std::isfinite(*before))
      // The norm that is left: the bound, or what it was where that was less.
      clipped_ = std::min(*bound, *before);
    clip_place_ = place;
    clip_norm_ = before;
    name = "clip_grad";
  }
  sequence_.add(context_,
                {.name = name,
                 .type = fields.text(field::api_type),
                 .place = place,
                 .several = (name == "scheduler" ? schedulers_ : known_optimizers_).size() > 1});
}

// `number` is the loss, `flag` whether it wants a gradient, `result` how many parameters have stale
// gradients.
void ProcessViews::backward(const Fields& fields) {
  std::optional<double> value = fields.real(field::api_number);
  bool repeated = value && last_loss_ && *value == *last_loss_ && std::isfinite(*value);
  losses_alike_ = repeated ? losses_alike_ + 1 : 0;
  last_loss_ = value;
  std::string_view place = fields.text(field::api_place);
  if (value) {
    RowMaker row(context_, ViewNumber::loss);
    row.set(loss::finite, std::isfinite(*value));
    row.set(loss::repeats, losses_alike_ >= kAlike);
    row.set(loss::several, known_optimizers_.size() > 1);
    row.detail = number_words("loss", value);
    row.row().number = *value;
    row.place = place;
    row.name = "loss";
    row.give();
  }
  BackwardRow held{.place = std::string(place), .where = context_};
  held.training = last_root_training_;
  held.root = last_root_;
  held.wants = fields.yes(field::api_flag);
  if (value) held.finite = std::isfinite(*value);
  if (auto stale = fields.real(field::api_result)) held.stale = *stale > 0;
  held.forward_before = forward_for_gradients_;
  // Another pass waits for the same step.
  held.accumulates = !backwards_.empty();
  forward_for_gradients_ = layers_called_ = layers_cast_ = false;
  backwards_.push_back(std::move(held));
  // Whose parameters it reached is not known: it counts for all.
  for (auto& [number, state] : optimizers_) state.backward = true;
  passes_.trained();
  const auto& batch = passes_.last();
  if (grouped_ && !batch.samples.empty() && last_root_training_)
    ranks_.batch(context_.rank, context_.step,
                 {batch.samples,
                  batch.distributed,
                  batch.sampler,
                  batch.place,
                  batch.shapes,
                  {batch.loader, batch.pass}});
  sequence_.add(context_, {.name = "backward",
                           .place = place,
                           .training = last_root_training_,
                           .several = known_optimizers_.size() > 1});
}

// `reached`: a step used the gradients; false: they were thrown away; none: the run ended before.
void ProcessViews::backward_rows(std::optional<bool> reached) {
  for (BackwardRow& held : backwards_) {
    RowMaker row(held.where, ViewNumber::backward);
    row.set(backward::reaches_step, reached);
    // Of a model that is not trained, as where its input is, the mode is anybody's choice.
    const ObservedModule* root = model_.module_at(held.root);
    if (!root || !model_.frozen_around(*root).value_or(false))
      row.set(backward::training, held.training);
    row.set(backward::wants, held.wants);
    row.set(backward::finite, held.finite);
    row.set(backward::forward_before, held.forward_before);
    row.set(backward::stale, held.stale);
    row.set(backward::several, known_optimizers_.size() > 1);
    row.set(backward::accumulates, held.accumulates);
    row.set(backward::masters, masters_);
    if (held.stale.value_or(false))
      row.detail = "gradients of the last step are still there and are added to";
    row.place = held.place;
    row.name = "backward";
    row.give();
  }
  backwards_.clear();
}

void ProcessViews::parameter(const Fields& fields) { model_.parameter(fields); }

void ProcessViews::update(const Fields& fields) {
  Update update;
  update.parameter = fields.integer(field::update_parameter).value_or(-1);
  update.value = fields.bits(field::update_value);
  update.before = fields.bits(field::update_before);
  update.gradient = fields.bits(field::update_gradient);
  update.gradient_dtype = fields.text(field::update_gradient_dtype);
  update.gradient_norm = fields.real(field::update_gradient_norm);
  update.norm = fields.real(field::update_norm);
  update.changed = fields.yes(field::update_changed);
  update.training = fields.yes(field::update_training);
  update.as_loaded = fields.yes(field::update_as_loaded);
  if (auto* parameter = model_.parameter_at(update.parameter);
      // Matrices in the first step alone. What is one number all over begins equal to many others
      // by itself.
      parameter && !parameter->had_grad && !parameter->constant && parameter->dims > 1 &&
      update.before.value_or(0) != 0 && parameter->root >= 0 && context_.step == 0) {
    began_[{parameter->root, *update.before}].push_back(update.parameter);
    began_anywhere_[*update.before].push_back(update.parameter);
  }
  updates_.push_back(std::move(update));
}

// The order within matters. backward_rows() and optimizer_row() want parameters as they were:
// `last` is the value after the step before until parameter_row() puts the new one there.
void ProcessViews::optimizer(const Fields& fields) {
  double lr = 0;
  bool lr_known = false;
  for (const ObservedValue& value : fields.list(field::optimizer_lr)) {
    double one = value.kind == ObservedKind::real      ? value.real
                 : value.kind == ObservedKind::integer ? static_cast<double>(value.integer)
                                                       : NAN;
    if (std::isnan(one)) continue;
    // The largest of all groups: where even that is zero, nothing can move.
    lr = std::max(lr, std::abs(one));
    lr_known = true;
  }
  if (!lr_known) lr = NAN;
  last_step_place_ = fields.text(field::optimizer_place);
  within_step_ = false;
  drawn_.clear();
  backward_rows(true);
  int64_t number = fields.integer(field::optimizer_number).value_or(-1);
  OptimizerState& state = optimizers_[number];
  known_optimizers_.insert(number);
  masters_ = masters_ || fields.integer(field::optimizer_strangers).value_or(0) > 0;
  optimizer_row(fields, lr);
  rank_step(fields);
  // A parameter's row asks whether its gradient is slight beside this.
  largest_gradient_ = 0;
  for (const Update& update : updates_)
    if (update.gradient_norm && std::isfinite(*update.gradient_norm))
      largest_gradient_ = std::max(largest_gradient_, *update.gradient_norm);
  for (const Update& update : updates_) {
    ObservedParameter* parameter = model_.parameter_at(update.parameter);
    if (!parameter) continue;
    parameter->buffer ? buffer_row(update) : parameter_row(update, fields, lr);
  }
  updates_.clear();
  clips_ = 0;
  random_rows();
  init_rows();
  state.backward = false;
  state.stepped = true;
  // What a gradient scaler left out is no step in the order of calls.
  if (!fields.yes(field::optimizer_skipped).value_or(false))
    sequence_.add(context_, {.name = "step",
                             .type = fields.text(field::optimizer_type),
                             .place = last_step_place_,
                             .several = known_optimizers_.size() > 1});
  model_.step_ended();
  if (grouped_) ranks_.step_ended(context_.rank, context_.step, context_.order, context_.event);
}

void ProcessViews::rank_step(const Fields& fields) {
  if (!grouped_) return;
  RankOptimizer step{.noise = fields.bits(field::optimizer_noise),
                     .clip_norm = clips_ == 1 ? clip_norm_ : std::nullopt,
                     .place = last_step_place_,
                     .clip_place = clip_place_,
                     .lr_place = scheduler_place_};
  for (const ObservedValue& value : fields.list(field::optimizer_lr))
    step.lr.push_back(value.kind == ObservedKind::real      ? value.real
                      : value.kind == ObservedKind::integer ? static_cast<double>(value.integer)
                                                            : NAN);
  step.type = fields.text(field::optimizer_type);
  ranks_.optimizer(context_.rank, context_.step, std::move(step));
}

void ProcessViews::optimizer_row(const Fields& fields, double lr) {
  int64_t number = fields.integer(field::optimizer_number).value_or(-1);
  const OptimizerState& state = optimizers_[number];
  bool any_trainable = false, any_known = false;
  for (ObservedParameter& parameter : model_.parameters()) {
    if (!parameter.met || parameter.optimizer != number) continue;
    any_known = true;
    any_trainable = any_trainable || parameter.requires_grad;
  }
  RowMaker row(context_, ViewNumber::optimizer);
  row.set(optimizer::type, fields.text(field::optimizer_type));
  row.set(optimizer::strangers, fields.integer(field::optimizer_strangers).value_or(0) > 0);
  row.set(optimizer::holds_all_trainable,
          fields.integer(field::optimizer_trainable_left).value_or(0) == 0);
  if (any_known) {
    row.set(optimizer::holds_trainable, any_trainable);
  }
  // By this step, or since the last one by whoever copies what an optimizer holds.
  std::optional<bool> moves;
  for (const Update& update : updates_) {
    const ObservedParameter* held = model_.parameter_at(update.parameter);
    if (!held || held->buffer || !held->requires_grad || held->root < 0 || !update.value) continue;
    const bool moved =
        update.changed.value_or(false) || (held->last && *held->last != *update.value);
    moves = moves.value_or(false) || moved;
  }
  row.set(optimizer::moves_models, moves);
  bool skipped = fields.yes(field::optimizer_skipped).value_or(false);
  row.set(optimizer::skipped, skipped);
  if (auto changed = fields.integer(field::optimizer_changed))
    row.set(optimizer::changes_some, *changed > 0);
  if (auto norm = fields.real(field::optimizer_gradient_norm)) {
    row.set(optimizer::gradient_zero, *norm == 0);
    row.set(optimizer::finite, std::isfinite(*norm));
    row.row().number = *norm;
  }
  if (!std::isnan(lr)) row.set(optimizer::lr_positive, lr > 0);
  row.set(optimizer::decays, fields.yes(field::optimizer_decays));
  const auto fresh = fields.yes(field::optimizer_noise_fresh);
  row.set(optimizer::noise_fresh, fresh);
  // Of one model that no rank shares: what was clipped is what the optimizer holds.
  const auto gradients = fields.real(field::optimizer_gradient_norm);
  const bool alone = !grouped_ && known_optimizers_.size() == 1 &&
                     fields.integer(field::optimizer_strangers).value_or(0) == 0 &&
                     fields.integer(field::optimizer_trainable_left).value_or(0) == 0;
  std::optional<bool> clipped_all;
  if (alone && clips_ == 1 && clipped_ && gradients && std::isfinite(*gradients))
    //   clipped to 1.0, and the step finds a norm of 3.2: the clipping was not given all gradients
    clipped_all = std::abs(*gradients - *clipped_) <= kNearNorm * std::max(*gradients, *clipped_);
  row.set(optimizer::clipped_all, clipped_all);
  const std::string_view aliased = fields.text(field::optimizer_aliased);
  if (fields.known(field::optimizer_aliased)) row.set(optimizer::own_memory, aliased.empty());
  // Asked at its first step alone: later its state is its own.
  if (!state.stepped) row.set(optimizer::state_loaded, state.loaded);
  row.set(optimizer::rest_loaded, !rest_loaded_.empty());
  // Gradients may be made without: by torch.func, by an evolution strategy.
  if (sequence_.ever("backward"))
    row.set(optimizer::backward_before, state.backward || !state.stepped);
  row.set(optimizer::several, known_optimizers_.size() > 1);
  row.set(optimizer::first, !state.stepped);
  row.name = fields.text(field::optimizer_type);
  row.place = last_step_place_;
  row.detail = number_words("gradient norm", fields.real(field::optimizer_gradient_norm));
  if (auto strangers = fields.integer(field::optimizer_strangers); strangers && *strangers > 0)
    row.detail += "; holds " + std::to_string(*strangers) + " parameters that are in no model";
  if (auto left = fields.integer(field::optimizer_trainable_left); left && *left > 0)
    row.detail += "; " + std::to_string(*left) + " parameters that want gradients are held by none";
  if (!aliased.empty())
    row.detail += "; what it keeps in " + std::string(aliased) + " is the parameters' own memory";
  if (!clipped_all.value_or(true)) {
    row.detail += "; clipping left " + number_words("a norm", clipped_);
    if (!clip_place_.empty()) row.place = clip_place_;
  }
  if (!fresh.value_or(true)) {
    row.detail += "; the random numbers before it were those of an earlier step";
    if (!seed_place_.empty()) row.place = seed_place_;
  }
  if (!fields.yes(field::optimizer_decays).value_or(true)) {
    row.detail += "; the groups with a weight_decay hold nothing";
    if (!state.made.empty()) row.place = state.made;
  }
  if (!rest_loaded_.empty() && !state.stepped && !state.loaded) {
    row.detail += "; it begins anew, and a scheduler's or a scaler's state was loaded";
    row.place = rest_loaded_;
  }
  row.give();
}

}  // namespace opguard
