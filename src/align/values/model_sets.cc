// Slots of loss and optimizer events become sets by their flags, kinds and names.
//
//   slot of an optimizer event          set
//   out, model value                    after        "param:layers.0.weight" as the step left it
//   in,  model value                    gradients    "grad:layers.0.weight"
//   out, "state..."                     states       "state:layers.0.weight.exp_avg"
//   in,  "param..."                     before
//
// A value without a fingerprint, or one that a rule hides, is left out, and the set is not `whole`.
// Nothing is kept but the numbers of these events: sets are made anew each time they are asked for.
#include "align/values/model_sets.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

namespace opguard {
namespace {

// One tensor of a step: by the memory it lies in, else by its name.
using Tensor = std::tuple<uint32_t, uint64_t, uint32_t, uint32_t>;

Tensor tensor_of(const Slot& slot) {
  if (slot.storage != 0 && slot.address != 0) return {slot.storage, slot.address, slot.meta, 0};
  return {0, 0, slot.meta, slot.name};
}

// Leaves one of the values of each tensor: the first listed or the last.
// An inner optimizer ends first, so its event stands first. What was read is as the inner one read
// it, and what was left as the outer one left it.
void once(ModelSet& set, bool last) {
  std::set<Tensor> seen;
  std::vector<HeldValue> kept;
  auto keep = [&](HeldValue& held) {
    if (seen.insert(tensor_of(held.slot)).second) kept.push_back(std::move(held));
  };
  if (last)
    for (size_t i = set.held.size(); i-- > 0;) keep(set.held[i]);
  else
    for (HeldValue& held : set.held) keep(held);
  if (last) std::reverse(kept.begin(), kept.end());
  set.held = std::move(kept);
}

}  // namespace

ModelMoments::ModelMoments(const Timeline& timeline, int32_t process, int side,
                           const HiddenRecords& hidden)
    : log_(timeline.run(side).processes[process]), process_(process), side_(side), hidden_(hidden) {
  const StepPairs& pairs = timeline.steps(side, process);
  for (uint32_t e = 0; e < log_.events.size(); ++e) {
    const EventKind kind = log_.events.kind(e);
    if (kind != EventKind::loss && kind != EventKind::optimizer) continue;
    if (pairs.besides(side, log_.events.step(e))) continue;
    if (kind == EventKind::loss) losses_.push_back(e);
    if (kind != EventKind::optimizer) continue;
    // Steps are counted when the outermost of them ends.
    if (!steps_.empty() && log_.events.step(steps_.back().front()) == log_.events.step(e))
      steps_.back().push_back(e);
    else
      steps_.push_back({e});
  }
}

void ModelMoments::add(const SlotRef& at, const Slot& slot, ModelSet& to) const {
  if (!has_value(slot) || hidden_.rule_of(side_, at.event, at.slot))
    to.whole = false;
  else
    to.held.push_back({at, value_key(log_, slot), slot});
}

ModelSet ModelMoments::loss(size_t k) const {
  ModelSet roots{{process_, losses_[k]}, {}};
  const EventSlots slots = log_.slots_of(log_.events[losses_[k]]);
  for (const Slot& slot : slots)
    if (slot.kind == SlotKind::in && (slot.flags & kModelValue))
      add({roots.event, slots.index_of(slot)}, slot, roots);
  return roots;
}

StepSets ModelMoments::step(size_t k) const {
  const std::vector<uint32_t>& events = steps_[k];
  const ModelSet none{{process_, events.back()}, {}};
  StepSets step{none, none, none, none};
  for (const uint32_t e : events) {
    const EventSlots slots = log_.slots_of(log_.events[e]);
    for (const Slot& slot : slots) {
      const SlotRef at{{process_, e}, slots.index_of(slot)};
      const std::string_view name = log_.text(slot.name);
      if (slot.flags & kModelValue) {
        if (slot.kind == SlotKind::out) add(at, slot, step.after);
        if (slot.kind == SlotKind::in) add(at, slot, step.gradients);
      } else if (slot.kind == SlotKind::out && name.starts_with("state")) {
        add(at, slot, step.states);
      } else if (slot.kind == SlotKind::in && name.starts_with("param")) {
        add(at, slot, step.before);
      }
    }
  }
  if (events.size() > 1) {
    for (ModelSet* read : {&step.before, &step.gradients}) once(*read, /*last=*/false);
    for (ModelSet* left : {&step.after, &step.states}) once(*left, /*last=*/true);
  }
  return step;
}

ModelSet ModelMoments::inputs(uint32_t e) const {
  ModelSet read{{process_, e}, {}};
  const EventSlots slots = log_.slots_of(log_.events[e]);
  for (const Slot& slot : slots)
    if (slot.kind == SlotKind::in) add({read.event, slots.index_of(slot)}, slot, read);
  return read;
}

}  // namespace opguard
