// invariants/views/fields.h: an observation's values by the names that a view knows.
//
//   const Fields f(observation, kinds.positions(observation.schema), strings);   of "update"
//   f.text(field::update_gradient_dtype)      "float32", "" for none
//
// A log says its own schemas (record/observation.h). A field that it lacks reads as none, and one
// that nobody here knows is stepped over.
//
// Counterexample: a value of another kind than is asked for is none as well. integer() of a real
// number is no number.
//
// The cost: one lookup by number a value.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "record/observation.h"

namespace opguard {

enum class SeenKind : uint8_t {
  group,
  module,
  form,
  call,
  api,
  parameter,
  update,
  optimizer,
  loader,
  batch,
  pass,
  random,
  save,
  load,
  collective,
  p2p,
  told,
  criterion,
  unknown
};

// Fields in the order of docs/formats/observations.md.
namespace field {
enum Group { group_rank, group_world, group_backend };
enum Module {
  module_number,
  module_name,
  module_type,
  module_library,
  module_root,
  module_parameters,
  module_batch_first,
  module_repeated,
  module_momentum
};
enum Form {
  form_number,
  form_training,
  form_grad,
  form_autocast,
  form_inputs,
  form_outputs,
  form_parameter_dtype,
  form_parameter_wants,
  form_uniform
};
enum Call { call_module, call_form, call_caller, call_drew, call_place };
enum Api { api_name, api_object, api_type, api_number, api_flag, api_result, api_place };
enum Parameter {
  parameter_number,
  parameter_root,
  parameter_name,
  parameter_module,
  parameter_kind,
  parameter_attr,
  parameter_dtype,
  parameter_shape,
  parameter_requires_grad,
  parameter_leaf,
  parameter_storage,
  parameter_names,
  parameter_constant,
  parameter_attributes,
  parameter_optimizer,
  parameter_group,
  parameter_weight_decay,
  parameter_placement
};
enum Update {
  update_parameter,
  update_optimizer,
  update_value,
  update_before,
  update_gradient,
  update_gradient_dtype,
  update_gradient_norm,
  update_norm,
  update_changed,
  update_training,
  update_as_loaded
};
enum Optimizer {
  optimizer_number,
  optimizer_type,
  optimizer_lr,
  optimizer_held,
  optimizer_strangers,
  optimizer_changed,
  optimizer_trainable_left,
  optimizer_gradient_norm,
  optimizer_skipped,
  optimizer_place,
  optimizer_decays,
  optimizer_noise_fresh,
  optimizer_noise,
  optimizer_aliased
};
enum Loader {
  loader_number,
  loader_type,
  loader_batch_size,
  loader_drop_last,
  loader_workers,
  loader_sampler,
  loader_shuffled,
  loader_distributed,
  loader_length,
  loader_batches,
  loader_place
};
enum Batch {
  batch_loader,
  batch_pass,
  batch_index,
  batch_rows,
  batch_shapes,
  batch_place,
  batch_ends_are_targets
};
enum Pass { pass_loader, pass_pass, pass_taken, pass_ended, pass_place };
enum Random {
  random_function,
  random_p,
  random_asked,
  random_module,
  random_grad,
  random_place,
  random_module_training,
  random_state,
  random_again
};
enum Save {
  save_path,
  save_tensors,
  save_live,
  save_same,
  save_missing,
  save_unlike,
  save_place,
  save_trained_missing
};
enum Load {
  load_type,
  load_given,
  load_missing,
  load_unexpected,
  load_unlike,
  load_place,
  load_own,
  load_of,
  load_object
};
enum Collective {
  collective_function,
  collective_group,
  collective_sequence,
  collective_reduction,
  collective_dtype,
  collective_shape,
  collective_given,
  collective_left,
  collective_asynchronous,
  collective_place
};
enum P2p {
  p2p_function,
  p2p_peer,
  p2p_tag,
  p2p_number,
  p2p_dtype,
  p2p_shape,
  p2p_value,
  p2p_place
};
enum Told { told_name, told_holds, told_values, told_place };
enum Criterion {
  criterion_function,
  criterion_inputs,
  criterion_given,
  criterion_fits,
  criterion_autocast,
  criterion_grad,
  criterion_place
};
}  // namespace field

// [name, dtype, shape, requires_grad] of a form or a batch.
struct TensorForm {
  std::string_view name, dtype;
  std::vector<int64_t> shape;
  bool wants = false;
};

class Fields {
 public:
  Fields(const Observation& observation, std::span<const int8_t> positions,
         const std::vector<std::string>& strings)
      : observation_(&observation), positions_(positions), strings_(&strings) {}

  bool known(int field) const { return at(field).kind != ObservedKind::none; }
  std::string_view text(int field) const;  // "" where it is none
  std::optional<int64_t> integer(int field) const;
  std::optional<double> real(int field) const;  // an integer too
  std::optional<bool> yes(int field) const;
  std::optional<uint64_t> bits(int field) const;
  // The values of a list, nested lists in place; empty where it is none.
  std::span<const ObservedValue> list(int field) const;
  std::vector<int64_t> integers(int field) const;
  std::vector<std::string_view> texts(int field) const;
  std::vector<TensorForm> forms(int field) const;
  std::string_view text_of(const ObservedValue& value) const;

 private:
  std::span<const ObservedValue> values(int field) const;
  ObservedValue at(int field) const;

  const Observation* observation_;
  std::span<const int8_t> positions_;
  const std::vector<std::string>* strings_;
};

// The kinds of one log.
class Kinds {
 public:
  // `schemas` and `strings` grow with the log.
  // Unknown where no view reads the kind. Schemas are numbered as the log says them.
  SeenKind kind(uint32_t schema, std::span<const ObservationSchema> schemas,
                const std::vector<std::string>& strings);
  std::span<const int8_t> positions(uint32_t schema) const { return known_[schema].positions; }

 private:
  struct Known {
    SeenKind kind = SeenKind::unknown;
    std::vector<int8_t> positions;  // of the kind's field i in the schema, -1: not there
  };
  std::vector<Known> known_;
};

}  // namespace opguard
