// Objects by their numbers, as they are told of; questions about a module are answered by names.
//
//   "layers.0.attn" of root 0    around it stand "layers.0", "layers" and "" (the root itself)
//   is it frozen?                parameters of layers.0.attn and below are asked
//                                where there are none, those of layers.0, and so on
//
// Counterexample: a name that begins alike is not below. "layers.1" is not around "layers.10": the
// next letter must be a dot.
//
// The cost: frozen_around() goes over all parameters for each module around; it is remembered until
// a module or a parameter is told of again.
#include "invariants/views/model.h"

#include <algorithm>
#include <set>
#include <string>

#include "llvm/ADT/Hashing.h"

namespace opguard {

namespace {

// Numbers of objects are counted from 0; a log that is damaged may say any. Without a limit one
// number would take the memory.
constexpr int64_t kMostObjects = 4'000'000;

// Its place, made where it is new. The pointer holds until the next one is made.
template <typename T>
T* slot(std::vector<T>& held, std::optional<int64_t> number) {
  if (!number || *number < 0 || *number >= kMostObjects) return nullptr;
  if (static_cast<size_t>(*number) >= held.size()) held.resize(*number + 1);
  return &held[*number];
}

// Compared within one process of the tool only.
uint64_t digest_of(const std::vector<int64_t>& shape) {
  return llvm::hash_combine_range(shape.begin(), shape.end());
}

// "x float32 [8, 64], mask bool [8, 1]"
std::string words_of(const std::vector<TensorForm>& forms) {
  std::string words;
  for (const TensorForm& form : forms) {
    if (!words.empty()) words += ", ";
    words += std::string(form.name) + " " + std::string(form.dtype) + " [";
    for (size_t i = 0; i < form.shape.size(); ++i)
      words += (i ? ", " : "") + std::to_string(form.shape[i]);
    words += "]";
  }
  return words;
}

bool is_floating(std::string_view dtype) {
  return dtype.starts_with("float") || dtype.starts_with("bfloat");
}

const TensorForm* first_floating(const std::vector<TensorForm>& forms) {
  for (const TensorForm& form : forms)
    if (is_floating(form.dtype)) return &form;
  return nullptr;
}

// Attributes by which programs say that each rank holds a part: Megatron's, DeepSpeed's.
bool says_split(const Fields& fields) {
  auto values = fields.list(field::parameter_attributes);
  for (size_t i = 0; i + 1 < values.size(); i += 2) {
    std::string_view name = fields.text_of(values[i]);
    if ((name == "tensor_model_parallel" || name == "model_parallel" || name == "is_sharded" ||
         name == "expert") &&
        values[i + 1].kind == ObservedKind::yes)
      return true;
  }
  return false;
}

}  // namespace

// Dimensions are compared from the last one, as torch broadcasts. False too where torch would
// refuse them.
//
//   [8, 1] and [8]      8 against 1 in the last, 1 against 8 before it: both are widened
//   [8, 4] and [4]      only the second one is: the result is as large as the first
bool spreads(const TensorForm& one, const TensorForm& other) {
  const size_t dims = std::max(one.shape.size(), other.shape.size());
  bool widens_one = false, widens_other = false;
  for (size_t back = 1; back <= dims; ++back) {
    const int64_t a = back <= one.shape.size() ? one.shape[one.shape.size() - back] : 1;
    const int64_t b = back <= other.shape.size() ? other.shape[other.shape.size() - back] : 1;
    if (a != b && a != 1 && b != 1) return false;
    widens_one = widens_one || (a == 1 && b > 1);
    widens_other = widens_other || (b == 1 && a > 1);
  }
  return widens_one && widens_other;
}

std::string ObservedModule::words() const {
  return name.empty() ? "(" + type + ")" : name + " (" + type + ")";
}

std::string_view ObservedModule::type_for_rules() const {
  // A program's own class of such a name stands for the same mathematics.
  static const std::set<std::string_view> of_torch = {"Linear",
                                                      "Bilinear",
                                                      "Conv1d",
                                                      "Conv2d",
                                                      "Conv3d",
                                                      "ConvTranspose1d",
                                                      "ConvTranspose2d",
                                                      "Embedding",
                                                      "LayerNorm",
                                                      "RMSNorm",
                                                      "GroupNorm",
                                                      "BatchNorm1d",
                                                      "BatchNorm2d",
                                                      "BatchNorm3d",
                                                      "Dropout",
                                                      "MultiheadAttention",
                                                      "LSTM",
                                                      "GRU",
                                                      "ReLU",
                                                      "GELU",
                                                      "Sequential"};
  return library || of_torch.contains(type) ? std::string_view(type) : "user";
}

void ObservedModel::module(const Fields& fields) {
  ObservedModule* module = slot(modules_, fields.integer(field::module_number));
  if (!module) return;
  frozen_.clear();
  module->name = fields.text(field::module_name);
  module->type = fields.text(field::module_type);
  module->library = fields.yes(field::module_library).value_or(false);
  module->root = fields.integer(field::module_root).value_or(-1);
  module->repeated = fields.yes(field::module_repeated).value_or(false);
  module->momentum = fields.real(field::module_momentum);
  module->batch_first = fields.yes(field::module_batch_first);
}

void ObservedModel::form(const Fields& fields) {
  ObservedForm* form = slot(forms_, fields.integer(field::form_number));
  if (!form) return;
  *form = {};
  form->training = fields.yes(field::form_training).value_or(false);
  form->grad = fields.yes(field::form_grad).value_or(false);
  form->autocast = fields.text(field::form_autocast);
  form->uniform = fields.yes(field::form_uniform);
  auto inputs = fields.forms(field::form_inputs), outputs = fields.forms(field::form_outputs);
  const TensorForm* in = first_floating(inputs);
  const TensorForm* out = first_floating(outputs);
  if (in) form->in_shape = in->shape;
  std::string_view parameter = fields.text(field::form_parameter_dtype);
  form->parameter_wants = fields.yes(field::form_parameter_wants);
  if (!inputs.empty())
    form->in_wants = std::any_of(inputs.begin(), inputs.end(), [](auto& f) { return f.wants; });
  if (out) {
    form->wants = out->wants;
    form->dtype = out->dtype;
    if (in) form->out_is_in = out->dtype == in->dtype;
    if (is_floating(parameter)) form->out_is_parameter = out->dtype == parameter;
    if (!form->autocast.empty()) form->out_is_autocast = out->dtype == form->autocast;
  }
  if (!inputs.empty() && !outputs.empty() && !inputs[0].shape.empty() && !outputs[0].shape.empty())
    form->dim0_kept = inputs[0].shape[0] == outputs[0].shape[0];
  size_t counted = 0;
  bool equal = true;
  int64_t first = 0;
  for (const TensorForm& input : inputs) {
    if (input.shape.empty()) continue;
    if (counted++ == 0) first = input.shape[0];
    equal = equal && input.shape[0] == first;
  }
  if (counted > 1) form->dim0_equal = equal;
  if (parameter.empty() && inputs.size() == 2 && outputs.size() == 1 && outputs[0].shape.empty() &&
      is_floating(inputs[0].dtype) && is_floating(inputs[1].dtype))
    form->spreads = spreads(inputs[0], inputs[1]);
  // Ranks compare this digest: the number of inputs is in it, so outputs are not taken for inputs.
  form->shapes = inputs.size();
  for (const auto* list : {&inputs, &outputs})
    for (const TensorForm& tensor : *list)
      form->shapes = llvm::hash_combine(form->shapes, digest_of(tensor.shape));
  form->shape_words = words_of(inputs) + " -> " + words_of(outputs);
}

void ObservedModel::parameter(const Fields& fields) {
  ObservedParameter* p = slot(parameters_, fields.integer(field::parameter_number));
  if (!p) return;
  frozen_.clear();
  p->name = fields.text(field::parameter_name);
  p->attr = fields.text(field::parameter_attr);
  p->dtype = fields.text(field::parameter_dtype);
  p->placement = fields.text(field::parameter_placement);
  p->root = fields.integer(field::parameter_root).value_or(-1);
  p->module = fields.integer(field::parameter_module).value_or(-1);
  p->storage = fields.integer(field::parameter_storage).value_or(-1);
  p->optimizer = fields.integer(field::parameter_optimizer).value_or(-1);
  auto shape = fields.integers(field::parameter_shape);
  p->dims = shape.size();
  p->shape = digest_of(shape);
  p->empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  p->requires_grad = fields.yes(field::parameter_requires_grad).value_or(false);
  p->leaf = fields.yes(field::parameter_leaf).value_or(true);
  p->buffer = fields.text(field::parameter_kind) == "buffer";
  p->tied = fields.texts(field::parameter_names).size() > 1;
  if (const ObservedModule* module = module_at(p->module)) p->repeated = is_repeated(*module);
  p->constant = fields.yes(field::parameter_constant).value_or(false);
  p->split = says_split(fields);
  // Where no optimizer holds it there is none: `decays` stays unknown.
  if (auto decay = fields.real(field::parameter_weight_decay)) p->decays = *decay != 0;
  p->met = true;
}

std::optional<bool> ObservedModel::frozen_around(const ObservedModule& module) {
  auto [known, is_new] = frozen_.try_emplace({module.root, module.name});
  if (!is_new) return known->second;
  auto is_below = [](std::string_view name, std::string_view around) {
    return around.empty() || name == around ||
           (name.starts_with(around) && name[around.size()] == '.');
  };
  std::optional<bool>& frozen = known->second;
  for (std::string_view around = module.name;;) {
    for (const ObservedParameter& p : parameters_) {
      const ObservedModule* holder = p.met && !p.buffer ? module_at(p.module) : nullptr;
      if (!holder || holder->root != module.root || !is_below(holder->name, around)) continue;
      // One that is trained is enough: it is not frozen.
      frozen = frozen.value_or(true) && !(p.optimizer >= 0 && p.requires_grad);
    }
    if (frozen || around.empty()) return frozen;
    const size_t dot = around.rfind('.');
    around = dot == around.npos ? std::string_view{} : around.substr(0, dot);
  }
}

bool ObservedModel::is_repeated(const ObservedModule& module) const {
  return std::any_of(modules_.begin(), modules_.end(), [&](const ObservedModule& around) {
    return around.repeated && around.root == module.root &&
           (module.name == around.name || module.name.starts_with(around.name + "."));
  });
}

ObservedModel::OfModule ObservedModel::parameters_of(int64_t module) const {
  OfModule found;
  for (const ObservedParameter& p : parameters_) {
    if (!p.met || p.buffer || p.module != module) continue;
    found.still = found.still.value_or(true) && !p.ever_moved;
    found.wants = found.wants.value_or(false) || p.requires_grad;
  }
  return found;
}

const ObservedModule& ObservedModel::outermost_frozen(const ObservedModule& module) {
  const ObservedModule* outermost = &module;
  for (const ObservedModule& other : modules_) {
    // Only what was called since the last step has a place to point at.
    const bool around =
        other.root == module.root && other.called && other.name.size() < outermost->name.size() &&
        (other.name.empty() ||
         (module.name.starts_with(other.name) && module.name[other.name.size()] == '.'));
    if (around && frozen_around(other).value_or(false)) outermost = &other;
  }
  return *outermost;
}

void ObservedModel::step_ended() {
  for (ObservedModule& module : modules_)
    module.called = module.called_in_training = module.called_for_gradients = false;
}

ObservedModule* ObservedModel::module_at(std::optional<int64_t> number) {
  if (!number || *number < 0 || static_cast<size_t>(*number) >= modules_.size()) return nullptr;
  return &modules_[*number];
}

const ObservedForm* ObservedModel::form_at(std::optional<int64_t> number) const {
  if (!number || *number < 0 || static_cast<size_t>(*number) >= forms_.size()) return nullptr;
  return &forms_[*number];
}

ObservedParameter* ObservedModel::parameter_at(std::optional<int64_t> number) {
  if (!number || *number < 0 || static_cast<size_t>(*number) >= parameters_.size()) return nullptr;
  return parameters_[*number].met ? &parameters_[*number] : nullptr;
}

}  // namespace opguard
