// align/values/model_sets.h: the model values of one process, a moment at a time. A moment is what
// a backward pass begins with, or what the optimizers of one step read and left.
//
// A wrapper that steps an inner optimizer makes two events in one step. A ZeRO-style optimizer
// shows all parameters, the torch optimizer inside it this rank's share. They are one step here: a
// tensor that both list counts once, as the inner one read it and as the outer one left it.
#pragma once

#include <cstdint>
#include <vector>

#include "align/pair/timeline.h"
#include "align/rules/hidden.h"
#include "align/values/value_index.h"

namespace opguard {

struct HeldValue {
  SlotRef at;
  ValueKey key;
  Slot slot;
};

struct ModelSet {
  EventRef event;  // where it stands; of several events the last
  std::vector<HeldValue> held;
  bool whole = true;  // false: a value has no fingerprint, or a rule hides it
};

struct StepSets {
  ModelSet before, after;  // the parameters
  ModelSet gradients;      // as the optimizer reads them
  ModelSet states;         // as the step leaves them
};

class ModelMoments {
 public:
  // But for steps that the other run does not make.
  ModelMoments(const Timeline& timeline, int32_t process, int side, const HiddenRecords& hidden);

  size_t losses() const { return losses_.size(); }
  ModelSet loss(size_t k) const;  // the roots of the k-th backward pass

  size_t steps() const { return steps_.size(); }
  StepSets step(size_t k) const;

  // What an event reads, model value or not.
  ModelSet inputs(uint32_t event) const;

 private:
  void add(const SlotRef& at, const Slot& slot, ModelSet& to) const;

  const ProcessLog& log_;
  const int32_t process_;
  const int side_;
  const HiddenRecords& hidden_;
  std::vector<uint32_t> losses_;
  std::vector<std::vector<uint32_t>> steps_;  // the optimizer events of each
};

}  // namespace opguard
