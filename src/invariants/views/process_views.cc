// Each kind of observation has a function here or in process_steps.cc, process_parameters.cc,
// process_functions.cc. What only describes goes to ObservedModel; what happens becomes a row.
//
//   module, form, parameter   remembered by number, no row
//   call                      a row of `call`; where no module called it one of `root` as well
//   update                    waits for its optimizer's observation
//   optimizer                 rows of `optimizer`, `parameter`, `buffer`, `backward` and others
//
// Counterexample: a row at each observation. Whether a backward pass was of use shows at a later
// step. Whether a parameter moved for nothing needs the learning rate, which comes behind it.
#include "invariants/views/process_views.h"

#include <cmath>
#include <limits>

#include "invariants/view.h"

namespace opguard {

namespace {

// Functions that leave every rank with the same value.
bool leaves_alike(std::string_view function) {
  return function.starts_with("all_reduce") || function.starts_with("all_gather") ||
         function.starts_with("broadcast");
}

bool is_batch_norm(std::string_view type) {
  return type.starts_with("BatchNorm") || type == "SyncBatchNorm";
}

// torch's list of operators that autocast runs in the lower type, as layers. Softmax and losses are
// not among them: they run in float32.
bool is_cast_by_autocast(std::string_view type) {
  return type == "Linear" || type == "Bilinear" || type.starts_with("Conv");
}

// Of [4, 16, 8] from a loader of batches of 4: has the module been told that samples come first?
// Not known where both sizes are that of the batch, or none is.
std::optional<bool> batch_where_expected(const ObservedModule& module, const ObservedForm& form,
                                         int64_t batch) {
  if (!module.batch_first || form.in_shape.size() != 3 || batch < 2) return std::nullopt;
  const bool first = form.in_shape[0] == batch, second = form.in_shape[1] == batch;
  if (first == second) return std::nullopt;
  return first == *module.batch_first;
}

bool is_reduction(std::string_view function) {
  return function.find("reduce") != std::string_view::npos;
}

}  // namespace

// Here, and not beside RowMaker, which knows no tables.
size_t RowMaker::columns_of(uint16_t view) {
  static const std::vector<size_t> counts = [] {
    std::vector<size_t> made;
    for (const RuleView& v : views()) made.push_back(v.columns.size());
    return made;
  }();
  return counts[view];
}

ProcessViews::ProcessViews(CellTexts& texts, RowSink& sink, const std::vector<std::string>& strings,
                           RankViews& ranks, int32_t rank)
    : strings_(strings), ranks_(ranks), context_{texts, sink, 0, rank, 0, kNone} {}

void ProcessViews::add(const Observation& observation, std::span<const ObservationSchema> schemas) {
  SeenKind kind = kinds_.kind(observation.schema, schemas, strings_);
  // Of a newer recorder: nothing here asks it.
  if (kind == SeenKind::unknown) return;
  Fields fields(observation, kinds_.positions(observation.schema), strings_);
  context_.step = observation.step;
  // `context_` is copied into rows that are given later: they keep the step and the time of what
  // they tell.
  context_.order = static_cast<uint64_t>(observation.time_ns);
  context_.event = observation.event;
  switch (kind) {
    case SeenKind::group:
      return group(fields);
    case SeenKind::module:
      return model_.module(fields);
    case SeenKind::form:
      return model_.form(fields);
    case SeenKind::call:
      return call(fields);
    case SeenKind::api:
      return api(fields);
    case SeenKind::parameter:
      return parameter(fields);
    case SeenKind::update:
      return update(fields);
    case SeenKind::optimizer:
      return optimizer(fields);
    case SeenKind::loader:
      return passes_.loader(fields);
    case SeenKind::batch:
      return passes_.batch(context_, fields);
    case SeenKind::pass:
      return passes_.pass(context_, fields);
    case SeenKind::random:
      return random(fields);
    case SeenKind::save:
      return save(fields);
    case SeenKind::load:
      return load(fields);
    case SeenKind::collective:
      return collective(fields);
    case SeenKind::p2p:
      return p2p(fields);
    case SeenKind::told:
      return told(fields);
    case SeenKind::criterion:
      return criterion(fields);
    case SeenKind::unknown:
      return;
  }
}

void ProcessViews::finish() {
  // What is still open stays unknown: the run may have been cut here.
  backward_rows(std::nullopt);
  random_rows();
  init_rows();
  if (grouped_) ranks_.process_ended(context_.rank);
}

// A process of one rank is compared with nobody: nothing is handed to RankViews.
void ProcessViews::group(const Fields& fields) {
  context_.rank = static_cast<int32_t>(fields.integer(field::group_rank).value_or(context_.rank));
  grouped_ = fields.integer(field::group_world).value_or(1) > 1;
  if (!grouped_) return;
  ranks_.joined(context_.rank,
                static_cast<int32_t>(fields.integer(field::group_world).value_or(1)));
}

void ProcessViews::call(const Fields& fields) {
  ObservedModule* module = model_.module_at(fields.integer(field::call_module));
  const ObservedForm* form = model_.form_at(fields.integer(field::call_form));
  if (!module || !form) return;
  std::string_view place = fields.text(field::call_place);
  module->called = true;
  module->called_in_training = module->called_in_training || form->training;
  module->called_for_gradients = module->called_for_gradients || form->grad;
  module->place = place;
  RowMaker row(context_, ViewNumber::call);
  row.set(call::module, module->type_for_rules());
  row.set(call::training, form->training);
  row.set(call::grad, form->grad);
  row.set(call::autocast, form->autocast.empty() ? "no" : std::string_view(form->autocast));
  row.set(call::dtype, form->dtype);
  row.set(call::out_is_in, form->out_is_in);
  row.set(call::out_is_parameter, form->out_is_parameter);
  row.set(call::out_is_autocast, form->out_is_autocast);
  row.set(call::wants, form->wants);
  row.set(call::in_wants, form->in_wants);
  row.set(call::parameter_wants, form->parameter_wants);
  row.set(call::dim0_kept, form->dim0_kept);
  row.set(call::dim0_equal, form->dim0_equal);
  row.set(call::spreads, form->spreads);
  // By the size that the last batch's loader was made with.
  row.set(call::batch_where_expected, batch_where_expected(*module, *form, passes_.last().size));
  row.set(call::drew, fields.yes(field::call_drew));
  row.set(call::type, module->type);
  std::string words = module->words();
  row.name = module->name;
  row.module = words;
  row.place = place;
  if ((form->dim0_equal && !*form->dim0_equal) || form->spreads.value_or(false) ||
      (form->out_is_autocast && !*form->out_is_autocast) ||
      !batch_where_expected(*module, *form, passes_.last().size).value_or(true))
    row.detail = form->shape_words;
  row.give();
  if (grouped_)
    ranks_.call(context_.rank, context_.step, module->name,
                {std::string(module->type_for_rules()), module->type, form->shapes, form->training,
                 form->grad, std::string(place), form->shape_words});
  // Children return before their root, so what they show is there when the root's row is made.
  if (form->training && is_batch_norm(module->type_for_rules())) mode_shown_ = true;
  if (form->grad && is_cast_by_autocast(module->type_for_rules())) {
    layers_called_ = true;
    // One layer under autocast is enough.
    layers_cast_ = layers_cast_ || !form->autocast.empty();
  }
  if (!fields.known(field::call_caller)) root_call(fields, *module, *form);
}

void ProcessViews::root_call(const Fields& fields, const ObservedModule& module,
                             const ObservedForm& form) {
  int64_t number = fields.integer(field::call_module).value_or(-1);
  if (first_root_ < 0) first_root_ = number;
  several_roots_ = several_roots_ || number != first_root_;
  RowMaker row(context_, ViewNumber::root);
  row.set(root::training, form.training);
  row.set(root::grad, form.grad);
  row.set(root::uniform, form.uniform);
  // Of what was called since the last root returned: within this one.
  row.set(root::mode_shows, mode_shown_);
  row.set(root::dim0_equal, form.dim0_equal);
  row.set(root::trained_before, trained_before_);
  row.set(root::train_called, train_called_);
  row.set(root::drew, fields.yes(field::call_drew));
  row.set(root::wants, form.wants);
  row.set(root::several, several_roots_);
  row.set(root::module, module.type_for_rules());
  row.set(root::type, module.type);
  std::string words = module.words();
  row.name = module.name;
  row.module = words;
  row.place = fields.text(field::call_place);
  if (form.dim0_equal && !*form.dim0_equal) row.detail = form.shape_words;
  row.give();
  mode_shown_ = false;
  if (form.grad && form.wants.value_or(false) && form.parameter_wants) layers_place_ = row.place;
  // A reference that is called without gradients in between has a mode of its own.
  if (form.grad && form.wants.value_or(true)) {
    last_root_training_ = form.training;
    last_root_ = number;
  }
  if (form.training) trained_before_ = true;
  if (form.grad && form.wants.value_or(true)) forward_for_gradients_ = true;
  if (grouped_ && module.type == "DistributedDataParallel") ranks_.wrapped(context_.rank);
  sequence_.add(context_, {.name = form.training ? "forward_train" : "forward_eval",
                           .place = row.place,
                           .training = form.training,
                           .grad = form.grad,
                           .several = known_optimizers_.size() > 1});
}

void ProcessViews::save(const Fields& fields) {
  auto live = fields.integer(field::save_live).value_or(0);
  auto same = fields.integer(field::save_same).value_or(0);
  auto missing = fields.texts(field::save_missing);
  auto unlike = fields.texts(field::save_unlike);
  sequence_.add(context_, {.name = "save", .place = fields.text(field::save_place)});
  // No model was met: the checkpoint has nothing to be compared with.
  if (live == 0) return;
  RowMaker row(context_, ViewNumber::save);
  // Of a checkpoint that has none of the models' tensors nothing can be told.
  bool some = same > 0 || !unlike.empty();
  row.set(save::some, some);
  // As where some tensors were copied before the last step, and some after it.
  row.set(save::mixed, same > 0 && !unlike.empty());
  if (some) {
    row.set(save::has_all, missing.empty());
    row.set(save::equals_live, unlike.empty());
  }
  const auto untaken = fields.texts(field::save_trained_missing);
  if (fields.known(field::save_trained_missing)) row.set(save::has_trained, untaken.empty());
  for (std::string_view name : unlike)
    row.detail += (row.detail.empty() ? "not the live value: " : ", ") + std::string(name);
  for (std::string_view name : missing)
    row.detail += (row.detail.empty() ? "not there: " : ", ") + std::string(name);
  if (missing.empty())
    for (std::string_view name : untaken)
      row.detail += (row.detail.empty() ? "trained, and not there: " : ", ") + std::string(name);
  if (unlike.empty() && !untaken.empty()) row.name = untaken[0];
  if (!unlike.empty()) row.name = unlike[0];
  row.place = fields.text(field::save_place);
  row.give();
}

void ProcessViews::load(const Fields& fields) {
  auto unlike = fields.texts(field::load_unlike);
  sequence_.add(context_, {.name = "load", .place = fields.text(field::load_place)});
  const std::string_view of = fields.text(field::load_of);
  if (of == "optimizer") optimizers_[fields.integer(field::load_object).value_or(-1)].loaded = true;
  if (of == "scheduler" || of == "scaler") rest_loaded_ = fields.text(field::load_place);
  RowMaker row(context_, ViewNumber::load);
  row.set(load::type, fields.text(field::load_type));
  const auto given = fields.integer(field::load_given), own = fields.integer(field::load_own);
  const auto missing = fields.integer(field::load_missing);
  const auto unexpected = fields.integer(field::load_unexpected);
  if (given && unexpected && *given > 0) row.set(load::fills_some, *unexpected < *given);
  // Both at once is the sign of another prefix: module.fc.weight is given, and fc.weight wanted.
  if (missing && unexpected) row.set(load::names_match, *missing == 0 || *unexpected == 0);
  // All that is given is the module's own memory: state_dict() gives no copies.
  if (given && own && *given > 0) row.set(load::given_is_other, *own < *given);
  if (missing) row.set(load::complete, *missing == 0);
  if (unexpected) row.set(load::nothing_unexpected, *unexpected == 0);
  row.set(load::equals_given, unlike.empty());
  row.name = fields.text(field::load_type);
  row.place = fields.text(field::load_place);
  if (missing && *missing > 0) row.detail = std::to_string(*missing) + " names were not given";
  if (unexpected && *unexpected > 0)
    row.detail += (row.detail.empty() ? "" : ", ") + std::to_string(*unexpected) + " of " +
                  std::to_string(given.value_or(0)) + " that were given nobody takes";
  if (own.value_or(0) > 0)
    row.detail += std::string(row.detail.empty() ? "" : ", ") + "it is given what it holds already";
  for (std::string_view name : unlike)
    row.detail += (row.detail.empty() ? "unlike what was given: " : ", ") + std::string(name);
  row.give();
}

void ProcessViews::collective(const Fields& fields) {
  std::string function(fields.text(field::collective_function));
  auto shape = fields.integers(field::collective_shape);
  int64_t elements = 1;
  for (int64_t size : shape) elements *= size;
  // A single number may be a loss that is averaged to be printed: that makes no replicas.
  if (grouped_ && is_reduction(function) && elements > 1)
    ranks_.reduced(context_.rank, context_.step);
  auto sequence = fields.integer(field::collective_sequence);
  if (!grouped_ || !sequence) return;
  RankCollective collective{function,
                            std::string(fields.text(field::collective_dtype)),
                            std::string(fields.text(field::collective_place)),
                            std::move(shape),
                            fields.bits(field::collective_left),
                            leaves_alike(function)};
  ranks_.collective(context_.rank, context_.step, std::string(fields.text(field::collective_group)),
                    *sequence, std::move(collective));
}

void ProcessViews::p2p(const Fields& fields) {
  auto peer = fields.integer(field::p2p_peer);
  auto number = fields.integer(field::p2p_number);
  if (!grouped_ || !peer || !number) return;
  ranks_.sent(context_.rank, context_.step);
  RankMessage message;
  message.sent = fields.text(field::p2p_function).find("send") != std::string_view::npos;
  int32_t other = static_cast<int32_t>(*peer);
  message.from = message.sent ? context_.rank : other;
  message.to = message.sent ? other : context_.rank;
  message.tag = fields.integer(field::p2p_tag).value_or(0);
  message.number = *number;
  message.dtype = fields.text(field::p2p_dtype);
  message.shape = fields.integers(field::p2p_shape);
  message.value = fields.bits(field::p2p_value);
  message.place = fields.text(field::p2p_place);
  ranks_.message(context_.step, std::move(message));
}

void ProcessViews::told(const Fields& fields) {
  RowMaker row(context_, ViewNumber::told);
  row.set(told::name, fields.text(field::told_name));
  row.set(told::holds, fields.yes(field::told_holds));
  row.name = fields.text(field::told_name);
  row.place = fields.text(field::told_place);
  if (!fields.yes(field::told_holds).value_or(true))
    for (const ObservedValue& value : fields.list(field::told_values)) {
      if (!row.detail.empty()) row.detail += " ";
      if (value.kind == ObservedKind::text)
        row.detail += fields.text_of(value);
      else if (value.kind == ObservedKind::integer)
        row.detail += std::to_string(value.integer);
      else if (value.kind == ObservedKind::real)
        row.detail += std::to_string(value.real);
      else if (value.kind == ObservedKind::yes)
        row.detail += "yes";
      else if (value.kind == ObservedKind::no)
        row.detail += "no";
    }
  row.give();
}

}  // namespace opguard
