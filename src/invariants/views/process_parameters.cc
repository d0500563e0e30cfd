// What an optimizer's step leaves of parameters and buffers: rows of ProcessViews.
//
//   fc.weight   requires_grad=yes held=yes has_grad=yes changed=no noticeable=yes lr_zero=no
//   a rule      where the gradient is noticeable and the rate not zero: it changes
//
// Most columns are there to keep a rule from being wrong. Counterexample: "each parameter changes
// at each step". A bias before a BatchNorm need not, nor one whose rate is zero, nor one of 16 bits
// at a small rate.
//
// The cost: a row for each parameter and step. That ranks may be compared, its digests are copied
// once more.
#include <cmath>

#include "invariants/views/process_views.h"

namespace opguard {

namespace {

// A step of lr times gradient that is this small a part of the parameter may be lost in rounding.
constexpr double kNoticeable = 1e-5;
// Of a batch norm's statistics the last batch is less than the others before it together.
constexpr double kLargestMomentum = 0.5;
// A gradient that is this small a part of the step's largest is rounding: that of a bias before a
// BatchNorm, which takes it away.
constexpr double kSlight = 1e-6;

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

// `lr` is the largest of the optimizer's rates, NaN where none is known. The row comes first, and
// then what the next step has to know of this one.
void ProcessViews::parameter_row(const Update& update, const Fields& optimizer, double lr) {
  ObservedParameter& parameter = *model_.parameter_at(update.parameter);
  const ObservedModule* module = model_.module_at(parameter.module);
  bool has_grad = update.gradient_dtype.empty() ? update.gradient.has_value() : true;
  bool held = parameter.optimizer >= 0;
  // A copy of a tensor that was meant to be shared: an output layer's weight beside an embedding's.
  // Of two modules of one type an equal beginning may be meant, as of layers that are cloned.
  if (auto it = began_.find({parameter.root, update.before.value_or(0)});
      update.before && it != began_.end())
    for (int64_t other : it->second) {
      ObservedParameter* twin = model_.parameter_at(other);
      if (other == update.parameter || !twin || twin->storage == parameter.storage) continue;
      const ObservedModule* of_twin = model_.module_at(twin->module);
      if (module && of_twin && of_twin->type != module->type) parameter.copied = true;
    }
  // The same of another model: an optimizer that holds a network and the copy that should follow
  // it.
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
  // Copies may be held in its place.
  if (held || !masters_) row.set(parameter::held, held);
  if (module) row.set(parameter::used, module->called_for_gradients);
  if (module) row.set(parameter::called, module->called);
  // A shard may have none of its elements.
  if (has_grad || !parameter.empty) row.set(parameter::has_grad, has_grad);
  if (has_grad && update.gradient_norm) {
    row.set(parameter::gradient_zero, *update.gradient_norm == 0);
    row.set(parameter::gradient_slight, *update.gradient_norm <= kSlight * largest_gradient_);
    row.set(parameter::gradient_finite, std::isfinite(*update.gradient_norm));
  }
  if (update.norm) row.set(parameter::finite, std::isfinite(*update.norm));
  const bool skipped = optimizer.yes(field::optimizer_skipped).value_or(false);
  row.set(parameter::changed, update.changed);
  // Where it did not change now, the step before has to be known. Rprop lets one step out, and not
  // two.
  if (update.changed && (*update.changed || parameter.changed))
    row.set(parameter::changed_lately, *update.changed || *parameter.changed);
  // Whoever wrote it since the step before, not this step alone.
  if (parameter.last && update.value) row.set(parameter::moved, *parameter.last != *update.value);
  if (update.gradient_norm && update.norm && !std::isnan(lr))
    // By the norms of the whole tensor, as a plain step of SGD would move it.
    row.set(parameter::noticeable, lr * *update.gradient_norm > kNoticeable * *update.norm);
  row.set(parameter::dtype, parameter.dtype);
  if (has_grad && !update.gradient_dtype.empty())
    row.set(parameter::gradient_dtype_same, update.gradient_dtype == parameter.dtype);
  row.set(parameter::training, update.training);
  row.set(parameter::tied, parameter.tied);
  row.set(parameter::copied, parameter.copied);
  row.set(parameter::repeated, parameter.repeated);
  row.set(parameter::as_loaded, update.as_loaded);
  // Of no model, and held: a copy that the optimizer works on.
  if (parameter.root < 0 && held)
    row.set(parameter::master_wide, parameter.dtype != "bfloat16" && parameter.dtype != "float16");
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
  if (!update.as_loaded.value_or(true))
    row.detail += ", it is not what was loaded, and no step has changed it";
  if (parameter.repeated) row.detail += ", its module stands more than once in a list";
  if (parameter.twin) row.detail += ", began as a copy of another that it holds too";
  row.row().number = update.norm && update.gradient_norm && *update.norm > 0
                         ? *update.gradient_norm / *update.norm
                         : NAN;
  row.give();
  parameter.ever_moved = parameter.ever_moved || update.changed.value_or(false) ||
                         (parameter.last && update.value && *parameter.last != *update.value);
  parameter.last = update.value;
  parameter.had_grad = has_grad;
  // A step that had no gradient, or was left out, says nothing of what the next one should do.
  parameter.changed = has_grad && !skipped ? update.changed : std::nullopt;
  // Ranks know a parameter by its name.
  if (grouped_ && !parameter.name.empty())
    ranks_.parameter(context_.rank, context_.step, parameter.name,
                     {update.value, update.before, update.gradient, has_grad, parameter.constant,
                      parameter.split || parameter.placement.find("Shard") != std::string::npos,
                      !parameter.placement.empty(), parameter.requires_grad, held,
                      !update.norm || std::isfinite(*update.norm), parameter.shape, parameter.dims,
                      module ? std::string(module->type_for_rules()) : "", words, parameter.attr,
                      last_step_place_});
}

// A buffer's row asks who called its module since the last step: running statistics follow
// training, and nothing else.
void ProcessViews::buffer_row(const Update& update) {
  ObservedParameter& held = *model_.parameter_at(update.parameter);
  const ObservedModule* module = model_.module_at(held.module);
  RowMaker row(context_, ViewNumber::buffer);
  // A forward writes it, and no step: what it was after the last one is what to compare with.
  if (held.last && update.value) row.set(buffer::changed, *held.last != *update.value);
  held.last = update.value;
  if (update.norm) row.set(buffer::finite, std::isfinite(*update.norm));
  // torch's momentum is the new batch's share.
  if (module && module->momentum) row.set(buffer::slow, *module->momentum <= kLargestMomentum);
  row.set(buffer::training, update.training);
  if (module) {
    row.set(buffer::called, module->called);
    row.set(buffer::called_in_training, module->called_in_training);
    row.set(buffer::called_for_gradients, module->called_for_gradients);
    row.set(buffer::frozen, model_.frozen_around(*module));
    const auto own = model_.parameters_of(held.module);
    row.set(buffer::still, own.still);
    row.set(buffer::wants, own.wants);
  }
  if (module) row.set(buffer::module, module->type_for_rules());
  row.set(buffer::attr, held.attr);
  std::string words = module ? module->words() : "";
  row.name = held.name;
  row.module = words;
  row.place = module && !module->place.empty() ? std::string_view(module->place)
                                               : std::string_view(last_step_place_);
  if (module && module->momentum && *module->momentum > kLargestMomentum)
    row.detail = number_words("momentum", module->momentum);
  row.give();
}

// Of each function by itself: one that fills twice is told, and xavier after zeros is not.
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
