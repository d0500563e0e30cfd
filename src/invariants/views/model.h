// invariants/views/model.h: what is known of a process's modules, forms and parameters.
//
//   module 3      "layers.0.attn", Attention, of root 0, last called in model.py:20:Block.forward
//   form 7        a call in training, float32 [8, 64] -> float32 [8, 64]
//   parameter 12  "layers.0.attn.q.weight", module 3, held by optimizer 0
//
// The cost: one entry each; nothing grows with the steps.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "invariants/views/fields.h"

namespace opguard {

struct ObservedModule {
  std::string name, type;
  bool library = false;
  int64_t root = -1;
  bool called = false, called_in_training = false;  // since the last step
  bool called_for_gradients = false;                // with gradients enabled, since the last step
  bool repeated = false;                            // a list holds it more than once
  std::optional<double> momentum{};                 // of a batch norm
  std::optional<bool> batch_first{};                // of what takes sequences: its own attribute
  std::string place;                                // of its last call
  // "layers.0.attn (Attention)", "(Net)" of a root.
  std::string words() const;
  // The type, where a rule of other programs may name it: a library's, or a class that is called
  // as one of torch.nn. Else "user".
  std::string_view type_for_rules() const;
};

// Columns of a form of call: they are the same whenever it occurs.
struct ObservedForm {
  std::optional<bool> uniform, dim0_kept, dim0_equal, out_is_in, out_is_parameter, out_is_autocast;
  std::optional<bool>
      spreads;  // of a module without parameters that makes one number of two tensors
  std::optional<bool> wants, in_wants, parameter_wants;
  bool training = false, grad = false;
  std::string autocast, dtype;
  std::vector<int64_t> in_shape;  // of the first floating input
  uint64_t shapes = 0;            // a digest of all shapes and types
  std::string shape_words;
};

struct ObservedParameter {
  std::string name, attr, dtype, placement;
  // Numbers of what it belongs to, -1: nothing. `storage` is that of its memory, for who shares it.
  int64_t root = -1, module = -1, storage = -1, optimizer = -1;
  size_t dims = 0;
  uint64_t shape = 0;  // a digest
  bool requires_grad = false, leaf = true, buffer = false, tied = false, constant = false;
  bool empty = false;  // it has no elements here
  bool split = false;  // its own attributes say that ranks hold parts of it
  bool copied = false, twin = false;
  bool repeated = false;    // a list holds its module, or one around it, more than once
  bool ever_moved = false;  // since it was met
  std::optional<bool> decays;
  bool had_grad = false, met = false;
  std::optional<uint64_t> last{};  // its value after the step before
  std::optional<bool> changed{};   // by that step, where it had a gradient
};

// Do two shapes broadcast to one that is larger than both, as [8, 1] and [8] do to [8, 8]?
bool spreads(const TensorForm& one, const TensorForm& other);

class ObservedModel {
 public:
  void module(const Fields& fields);
  void form(const Fields& fields);
  // It may be told of again, with whatever has changed; what was seen of its values stays.
  void parameter(const Fields& fields);
  // After a process's optimizer has stepped.
  void step_ended();

  // nullptr: not known.
  ObservedModule* module_at(std::optional<int64_t> number);
  const ObservedForm* form_at(std::optional<int64_t> number) const;
  ObservedParameter* parameter_at(std::optional<int64_t> number);
  std::vector<ObservedParameter>& parameters() { return parameters_; }
  // Does an optimizer train none of the parameters around a module? Of the innermost module around
  // it that has any; none where none has.
  std::optional<bool> frozen_around(const ObservedModule& module);
  // Of a module's own parameters: has none moved, does one want a gradient? None: it has none.
  struct OfModule {
    std::optional<bool> still{}, wants{};
  };
  OfModule parameters_of(int64_t module) const;
  bool is_repeated(const ObservedModule& module) const;
  // The outermost module around this one of whose parameters none is trained; else itself.
  const ObservedModule& outermost_frozen(const ObservedModule& module);

 private:
  std::vector<ObservedModule> modules_;
  std::vector<ObservedForm> forms_;
  std::vector<ObservedParameter> parameters_;
  std::map<std::pair<int64_t, std::string>, std::optional<bool>> frozen_;  // by root and name
};

}  // namespace opguard
