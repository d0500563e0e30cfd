// What functions of torch.nn.functional were given: dropouts and losses. Rows of ProcessViews.
//
//   dropout in fc, p = 0.5, state 70          forward pass: 70 is remembered for this module
//   dropout in fc, again, state 70            computed anew in the backward pass: draws_same=yes
//   dropout in fc, again, state 71            draws_same=no: another mask than the forward pass had
//
//   mse_loss of [8, 1] and [8]                spreads=yes: torch compares 64 pairs
//
// Counterexample: cross_entropy of [8, 10] and [8]. Classes and their indices differ by what they
// mean, so only targets of floating point are compared by shape.
//
// The cost: of the dropouts between two steps a number each.
#include <algorithm>

#include "invariants/views/process_views.h"

namespace opguard {

namespace {

std::string shape_words(const std::vector<TensorForm>& forms) {
  std::string words;
  for (const TensorForm& form : forms) {
    words += words.empty() ? "[" : " and [";
    for (size_t i = 0; i < form.shape.size(); ++i)
      words += (i ? ", " : "") + std::to_string(form.shape[i]);
    words += "]";
  }
  return words;
}

// Between two steps. Where more are drawn, those of later ones are not known.
constexpr size_t kMostDrawn = 1 << 16;

// "0.250" of 0.25.
std::string short_number(double number) { return std::to_string(number).substr(0, 5); }

// These take exponentials: 8 bits of a mantissa are too few.
bool takes_exponentials(std::string_view function) {
  return function == "cross_entropy" || function == "nll_loss" || function == "kl_div" ||
         function.starts_with("binary_cross_entropy");
}

}  // namespace

void ProcessViews::random(const Fields& fields) {
  RandomRow held{.function = std::string(fields.text(field::random_function)),
                 .place = std::string(fields.text(field::random_place)),
                 .detail = {},
                 .module = fields.integer(field::random_module).value_or(-1),
                 .where = context_,
                 .grad = fields.yes(field::random_grad).value_or(true)};
  held.on = fields.yes(field::random_asked);
  held.module_training = fields.yes(field::random_module_training);
  if (held.on.value_or(false)) {
    held.detail = "p = " + short_number(fields.real(field::random_p).value_or(0));
    if (held.module >= 0) mode_shown_ = true;
  }
  held.again = fields.yes(field::random_again);
  if (const auto state = fields.bits(field::random_state); state && drawn_.size() < kMostDrawn) {
    if (held.again.value_or(false))
      held.draws_same = drawn_.contains({held.module, *state});
    else
      drawn_.insert({held.module, *state});
  }
  const double p = fields.real(field::random_p).value_or(0);
  if (held.grad && held.module_training.value_or(false) && !held.again.value_or(false)) {
    // A place may use several probabilities within a step: all of the first step that has it are
    // allowed.
    auto [known, is_new] =
        probabilities_.try_emplace({held.module, held.place}, Probabilities{context_.step, {}});
    if (is_new || known->second.step == context_.step)
      known->second.met.insert(p);
    else
      held.p_same = known->second.met.contains(p);
    if (!held.p_same.value_or(true))
      held.detail += (held.detail.empty() ? "p = " + short_number(p) : "") + ", it was " +
                     short_number(*known->second.met.begin()) + " in step " +
                     std::to_string(known->second.step);
  }
  if (!held.draws_same.value_or(true))
    held.detail += ", computed anew with other random numbers than in the forward pass";
  const bool told = std::any_of(randoms_.begin(), randoms_.end(), [&](const RandomRow& other) {
    return other.module == held.module && other.place == held.place && other.on == held.on &&
           other.module_training == held.module_training;
  });
  // The first row has no `frozen`, since what is trained is told by the next step.
  random_row(held, std::nullopt);
  // Parameters are told of by the next step: once more then, where it matters.
  if (!held.grad && !told && held.module >= 0) randoms_.push_back(std::move(held));
}

// The second row of a dropout: complete by now. Rules that do not ask `frozen` are asked of both.
void ProcessViews::random_rows() {
  for (const RandomRow& held : randoms_) {
    const ObservedModule* module = model_.module_at(held.module);
    if (auto frozen = module ? model_.frozen_around(*module) : std::nullopt)
      random_row(held, frozen);
  }
  randoms_.clear();
}

void ProcessViews::random_row(const RandomRow& held, std::optional<bool> frozen) {
  const ObservedModule* module = model_.module_at(held.module);
  const std::string words = module ? module->words() : "";
  RowMaker row(held.where, ViewNumber::random);
  row.set(random::function, held.function);
  row.set(random::on, held.on);
  row.set(random::grad, held.grad);
  row.set(random::module_training, held.module_training);
  row.set(random::again, held.again);
  row.set(random::p_same, held.p_same);
  row.set(random::draws_same, held.draws_same);
  row.set(random::frozen, frozen);
  row.name = held.function;
  row.module = words;
  row.place = held.place;
  row.detail = held.detail;
  if (frozen) {
    // Who calls the frozen model is to blame, and not what it is made of.
    const ObservedModule& outermost = model_.outermost_frozen(*module);
    if (!outermost.name.empty()) row.name = outermost.name;
    if (!outermost.place.empty()) row.place = outermost.place;
    row.detail = held.function + " in " + words + ", " + held.detail;
  }
  row.give();
}

void ProcessViews::criterion(const Fields& fields) {
  const auto inputs = fields.forms(field::criterion_inputs);
  const std::string_view autocast = fields.text(field::criterion_autocast);
  RowMaker row(context_, ViewNumber::criterion);
  row.set(criterion::function, fields.text(field::criterion_function));
  row.set(criterion::fits, fields.yes(field::criterion_fits));
  row.set(criterion::autocast, autocast.empty() ? "no" : autocast);
  row.set(criterion::grad, fields.yes(field::criterion_grad));
  row.name = fields.text(field::criterion_function);
  row.place = fields.text(field::criterion_place);
  if (inputs.size() == 2 && takes_exponentials(fields.text(field::criterion_function))) {
    row.set(criterion::target_wants, inputs[1].wants);
    if (inputs[1].wants) row.detail = "the target wants a gradient";
  }
  // Of classes and of their indices shapes differ by what they mean.
  const bool of_pairs = inputs.size() == 2 && inputs[1].dtype.find("float") != std::string::npos;
  if (of_pairs) {
    const bool spread = spreads(inputs[0], inputs[1]);
    row.set(criterion::spreads, spread);
    if (spread) row.detail = shape_words(inputs);
  }
  if (!fields.yes(field::criterion_fits).value_or(true))
    row.detail = "given " + std::string(fields.text(field::criterion_given));
  // A loss under autocast whose layers ran before it began: they computed in float32, and only the
  // loss is cast.
  if (!autocast.empty() && layers_called_) {
    row.set(criterion::layers_cast, layers_cast_);
    // What ran outside is where to look.
    if (!layers_cast_ && !layers_place_.empty()) row.place = layers_place_;
  }
  if (!inputs.empty() && takes_exponentials(fields.text(field::criterion_function))) {
    // Autocast computes such a loss in float32, whatever it is given.
    const bool narrow = inputs[0].dtype == "bfloat16" || inputs[0].dtype == "float16";
    row.set(criterion::wide, !narrow || !autocast.empty());
    if (narrow && autocast.empty() && row.detail.empty())
      row.detail = "computed in " + std::string(inputs[0].dtype);
  }
  row.give();
}

}  // namespace opguard
