// Backward passes, optimizers' steps and what they leave: rows of ProcessViews.
#include <cmath>

#include "invariants/views/process_views.h"

namespace opguard {

namespace {

// A step of lr times gradient that is this small a part of the parameter may be lost in rounding.
constexpr double kNoticeable = 1e-5;
// A gradient that is this small a part of the step's largest is rounding: that of a bias before a
// BatchNorm, which takes it away.
constexpr double kSlight = 1e-6;
// A loss that is the same to the last bit in so many backward passes is stuck.
constexpr uint32_t kAlike = 3;

std::string number_words(std::string_view what, std::optional<double> value) {
  if (!value) return {};
  char digits[40];
  std::snprintf(digits, sizeof digits, "%.3g", *value);
  return std::string(what) + " " + digits;
}

// "layers.3.attn.weight" -> "layers.*.attn.weight": one rule for all layers.
std::string without_numbers(std::string_view name) {
  std::string plain;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] < '0' || name[i] > '9') {
      plain += name[i];
    } else if (plain.empty() || plain.back() != '*') {
      plain += '*';
    }
  }
  return plain;
}

}  // namespace

void ProcessViews::api(const Fields& fields) {
  std::string_view name = fields.text(field::api_name);
  std::string_view place = fields.text(field::api_place);
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
    const bool of_module = module && module->type == fields.text(field::api_type);
    if (object && !of_module) known_optimizers_.insert(*object);
  }
  // A data parallel wrapper is made: from now on ranks hold the same.
  if (name == "replicate" && grouped_) ranks_.wrapped(context_.rank);
  if (name == "set_epoch") passes_.set_epoch();
  if (name == "train" || name == "eval") train_called_ = train_called_ || name == "train";
  // Gradients that no step has used are thrown away here.
  if (name == "zero_grad" && fields.real(field::api_number).value_or(0) > 0) backward_rows(false);
  if (name.starts_with("clip_grad")) name = "clip_grad";
  sequence_.add(context_, {.name = name,
                           .type = fields.text(field::api_type),
                           .place = place,
                           .several = known_optimizers_.size() > 1});
}

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
  held.wants = fields.yes(field::api_flag);
  if (value) held.finite = std::isfinite(*value);
  if (auto stale = fields.real(field::api_result)) held.stale = *stale > 0;
  held.forward_before = forward_for_gradients_;
  held.accumulates = !backwards_.empty();
  forward_for_gradients_ = layers_called_ = layers_cast_ = false;
  backwards_.push_back(std::move(held));
  for (auto& [number, state] : optimizers_) state.backward = true;
  const auto& batch = passes_.last();
  if (grouped_ && !batch.samples.empty() && last_root_training_)
    ranks_.batch(context_.rank, context_.step,
                 {batch.samples, batch.distributed, batch.sampler, batch.place, batch.shapes});
  sequence_.add(context_, {.name = "backward",
                           .place = place,
                           .training = last_root_training_,
                           .several = known_optimizers_.size() > 1});
}

void ProcessViews::backward_rows(std::optional<bool> reached) {
  for (BackwardRow& held : backwards_) {
    RowMaker row(held.where, ViewNumber::backward);
    row.set(backward::reaches_step, reached);
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
  if (auto* parameter = model_.parameter_at(update.parameter);
      parameter && !parameter->had_grad && !parameter->constant && parameter->dims > 1 &&
      update.before.value_or(0) != 0 && parameter->root >= 0 && context_.step == 0) {
    began_[{parameter->root, *update.before}].push_back(update.parameter);
    began_anywhere_[*update.before].push_back(update.parameter);
  }
  updates_.push_back(std::move(update));
}

void ProcessViews::optimizer(const Fields& fields) {
  double lr = 0;
  bool lr_known = false;
  for (const ObservedValue& value : fields.list(field::optimizer_lr)) {
    double one = value.kind == ObservedKind::real      ? value.real
                 : value.kind == ObservedKind::integer ? static_cast<double>(value.integer)
                                                       : NAN;
    if (std::isnan(one)) continue;
    lr = std::max(lr, std::abs(one));
    lr_known = true;
  }
  if (!lr_known) lr = NAN;
  last_step_place_ = fields.text(field::optimizer_place);
  backward_rows(true);
  int64_t number = fields.integer(field::optimizer_number).value_or(-1);
  OptimizerState& state = optimizers_[number];
  known_optimizers_.insert(number);
  masters_ = masters_ || fields.integer(field::optimizer_strangers).value_or(0) > 0;
  optimizer_row(fields, lr);
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
  random_rows();
  init_rows();
  state.backward = false;
  state.stepped = true;
  if (!fields.yes(field::optimizer_skipped).value_or(false))
    sequence_.add(context_, {.name = "step",
                             .type = fields.text(field::optimizer_type),
                             .place = last_step_place_,
                             .several = known_optimizers_.size() > 1});
  model_.step_ended();
  if (grouped_) ranks_.step_ended(context_.rank, context_.step, context_.order, context_.event);
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
  if (!state.stepped) row.set(optimizer::state_loaded, state.loaded);
  row.set(optimizer::rest_loaded, !rest_loaded_.empty());
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

void ProcessViews::parameter_row(const Update& update, const Fields& optimizer, double lr) {
  ObservedParameter& parameter = *model_.parameter_at(update.parameter);
  const ObservedModule* module = model_.module_at(parameter.module);
  bool has_grad = update.gradient_dtype.empty() ? update.gradient.has_value() : true;
  bool held = parameter.optimizer >= 0;
  if (auto it = began_.find({parameter.root, update.before.value_or(0)});
      update.before && it != began_.end())
    for (int64_t other : it->second) {
      ObservedParameter* twin = model_.parameter_at(other);
      if (other == update.parameter || !twin || twin->storage == parameter.storage) continue;
      const ObservedModule* of_twin = model_.module_at(twin->module);
      if (module && of_twin && of_twin->type != module->type) parameter.copied = true;
    }
  if (auto it = began_anywhere_.find(update.before.value_or(0));
      update.before && it != began_anywhere_.end())
    for (int64_t other : it->second) {
      const ObservedParameter* twin = model_.parameter_at(other);
      const ObservedModule* of_twin = twin ? model_.module_at(twin->module) : nullptr;
      if (other == update.parameter || !twin || !module || !of_twin) continue;
      const bool same_place = twin->root != parameter.root && twin->attr == parameter.attr &&
                              of_twin->name == module->name && twin->storage != parameter.storage;
      if (same_place && twin->requires_grad && parameter.requires_grad && held &&
          twin->optimizer == parameter.optimizer)
        parameter.twin = true;
    }
  RowMaker row(context_, ViewNumber::parameter);
  row.set(parameter::requires_grad, parameter.requires_grad);
  row.set(parameter::held, held);
  if (module) row.set(parameter::used, module->called_for_gradients);
  if (module) row.set(parameter::called, module->called);
  row.set(parameter::has_grad, has_grad);
  if (has_grad && update.gradient_norm) {
    row.set(parameter::gradient_zero, *update.gradient_norm == 0);
    row.set(parameter::gradient_slight, *update.gradient_norm <= kSlight * largest_gradient_);
    row.set(parameter::gradient_finite, std::isfinite(*update.gradient_norm));
  }
  if (update.norm) row.set(parameter::finite, std::isfinite(*update.norm));
  const bool skipped = optimizer.yes(field::optimizer_skipped).value_or(false);
  row.set(parameter::changed, update.changed);
  if (update.changed && (*update.changed || parameter.changed))
    row.set(parameter::changed_lately, *update.changed || *parameter.changed);
  if (parameter.last && update.value) row.set(parameter::moved, *parameter.last != *update.value);
  if (update.gradient_norm && update.norm && !std::isnan(lr))
    row.set(parameter::noticeable, lr * *update.gradient_norm > kNoticeable * *update.norm);
  row.set(parameter::dtype, parameter.dtype);
  if (has_grad && !update.gradient_dtype.empty())
    row.set(parameter::gradient_dtype_same, update.gradient_dtype == parameter.dtype);
  row.set(parameter::training, update.training);
  row.set(parameter::tied, parameter.tied);
  row.set(parameter::copied, parameter.copied);
  if (held) row.set(parameter::twin_held, parameter.twin);
  row.set(parameter::leaf, parameter.leaf);
  row.set(parameter::first, context_.step == 0);
  row.set(parameter::decays, parameter.decays);
  if (!std::isnan(lr)) row.set(parameter::lr_zero, lr == 0);
  row.set(parameter::skipped, skipped);
  row.set(parameter::backward, sequence_.since_step("backward"));
  row.set(parameter::had_grad, parameter.had_grad);
  if (module) row.set(parameter::module, module->type_for_rules());
  row.set(parameter::attr, parameter.attr);
  row.set(parameter::dims, std::to_string(parameter.dims));
  row.set(parameter::optimizer, optimizer.text(field::optimizer_type));
  row.set(parameter::several, known_optimizers_.size() > 1);
  row.set(parameter::name, without_numbers(parameter.name));
  std::string words = module ? module->words() : "";
  row.name = parameter.name;
  row.module = words;
  // Where it has no gradient the step is not to blame: its module's call is nearer.
  row.place =
      (!has_grad || !held) && module && !module->place.empty() ? module->place : last_step_place_;
  if (!has_grad)
    row.detail = "no gradient";
  else
    row.detail = number_words("gradient norm", update.gradient_norm);
  if (update.changed && !*update.changed) row.detail += ", not changed by the step";
  if (update.norm && !std::isfinite(*update.norm)) row.detail += ", not finite";
  if (!held) row.detail += ", held by no optimizer";
  if (parameter.twin) row.detail += ", began as a copy of another that it holds too";
  row.row().number = update.norm && update.gradient_norm && *update.norm > 0
                         ? *update.gradient_norm / *update.norm
                         : NAN;
  row.give();
  parameter.last = update.value;
  parameter.had_grad = has_grad;
  parameter.changed = has_grad && !skipped ? update.changed : std::nullopt;
  if (grouped_ && !parameter.name.empty())
    ranks_.parameter(context_.rank, context_.step, parameter.name,
                     {update.value, update.before, update.gradient, has_grad, parameter.constant,
                      parameter.split || parameter.placement.find("Shard") != std::string::npos,
                      !parameter.placement.empty(), parameter.requires_grad, held,
                      !update.norm || std::isfinite(*update.norm), parameter.shape, parameter.dims,
                      module ? std::string(module->type_for_rules()) : "", words, parameter.attr,
                      last_step_place_});
}

void ProcessViews::buffer_row(const Update& update) {
  ObservedParameter& held = *model_.parameter_at(update.parameter);
  const ObservedModule* module = model_.module_at(held.module);
  RowMaker row(context_, ViewNumber::buffer);
  // A forward writes it, and no step: what it was after the last one is what to compare with.
  if (held.last && update.value) row.set(buffer::changed, *held.last != *update.value);
  held.last = update.value;
  if (update.norm) row.set(buffer::finite, std::isfinite(*update.norm));
  row.set(buffer::training, update.training);
  if (module) {
    row.set(buffer::called, module->called);
    row.set(buffer::called_in_training, module->called_in_training);
    row.set(buffer::called_for_gradients, module->called_for_gradients);
    row.set(buffer::frozen, model_.frozen_around(*module));
  }
  if (module) row.set(buffer::module, module->type_for_rules());
  row.set(buffer::attr, held.attr);
  std::string words = module ? module->words() : "";
  row.name = held.name;
  row.module = words;
  row.place = module && !module->place.empty() ? std::string_view(module->place)
                                               : std::string_view(last_step_place_);
  row.give();
}

void ProcessViews::init_rows() {
  for (const auto& [number, functions] : fills_) {
    const ObservedParameter* parameter = model_.parameter_at(number);
    if (!parameter) continue;
    const ObservedModule* module = model_.module_at(parameter->module);
    for (const auto& [function, filled] : functions) {
      RowMaker row(context_, ViewNumber::init);
      row.set(init::function, function);
      row.set(init::filled_once, filled.times == 1);
      row.set(init::fills_le2, filled.times <= 2);
      row.set(init::after_load, filled.after_load);
      if (module) row.set(init::module, module->type_for_rules());
      row.set(init::attr, parameter->attr);
      std::string words = module ? module->words() : "";
      row.name = parameter->name;
      row.module = words;
      row.place = filled.place;
      if (filled.times > 1)
        row.detail = "filled " + std::to_string(filled.times) + " times by " + function.substr(5);
      if (filled.after_load)
        row.detail = "filled by " + function.substr(5) + " after it was loaded";
      row.give();
    }
  }
  fills_.clear();
}

}  // namespace opguard
