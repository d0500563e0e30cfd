// A step's state is a sum over its parameters, each mixed with its name and rank. So the order in
// which an optimizer lists them does not count, and a rank's shard is not another rank's.
//
//   step 3 finds    mix(name w, value) + mix(name b, value)      found[3]
//   step 2 left     the same sum                                 goes_on(3): nothing was loaded
//
// Votes are per tensor, and by value. One that two steps of the other run find alike votes for
// none.
#include "align/pair/step_states.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "align/pair/mix.h"
#include "llvm/Support/xxhash.h"

namespace opguard {
namespace {

enum class Role : uint8_t { other, parameter, state };

// What an optimizer's slots are called, by string: "param:layers.0.weight",
// "state:layers.0.weight.exp_avg".
class StateNames {
 public:
  explicit StateNames(const ProcessLog& log) {
    for (const std::string& text : log.strings) {
      digests_.push_back(llvm::xxh3_64bits(llvm::StringRef(text)));
      roles_.push_back(text.starts_with("param")   ? Role::parameter
                       : text.starts_with("state") ? Role::state
                                                   : Role::other);
    }
  }
  Role role(uint32_t string) const { return string == kNone ? Role::other : roles_[string]; }
  // A value by this name.
  uint64_t value(const Slot& slot) const {
    return mix(mix(digests_[slot.name], slot.value.h), slot.value.m);
  }

 private:
  std::vector<uint64_t> digests_;
  std::vector<Role> roles_;
};

// visit(step, slot, names, rank) of every readable parameter and state of the optimizers' steps.
template <typename Visit>
void visit_states(const std::vector<const ProcessLog*>& processes, Visit visit) {
  for (const ProcessLog* log : processes) {
    const StateNames names(*log);
    for (uint64_t e = 0; e < log->events.size(); ++e) {
      if (log->events.kind(e) != EventKind::optimizer) continue;
      const Event event = log->events[e];
      const EventSlots slots = log->slots_of(event);
      for (const Slot& slot : slots)
        if (!(slot.flags & kUnreadable) && names.role(slot.name) != Role::other)
          visit(event.step, slot, names, log->rank);
    }
  }
}

void add_to_step(std::vector<uint64_t>& to, uint32_t step, uint64_t value) {
  if (to.size() <= step) to.resize(step + 1);
  to[step] += value;  // in any order: the runs may hold the parameters in another
}

}  // namespace

StepStates step_states(const std::vector<const ProcessLog*>& processes) {
  StepStates states;
  uint32_t with_state = kNone;  // the first step that finds some
  visit_states(processes,
               [&](uint32_t step, const Slot& slot, const StateNames& names, int32_t rank) {
                 if (names.role(slot.name) == Role::state && slot.kind == SlotKind::in)
                   with_state = std::min(with_state, step);
                 if (names.role(slot.name) != Role::parameter || slot.kind == SlotKind::written)
                   return;
                 const uint64_t value = mix(names.value(slot), uint64_t(rank)) | 1;
                 add_to_step(slot.kind == SlotKind::in ? states.found : states.left, step, value);
               });
  states.left.resize(std::max(states.found.size(), states.left.size()));
  states.found.resize(states.left.size());
  for (uint32_t step = 0; step < states.found.size() && states.first == kNone; ++step)
    if (states.found[step] != 0) states.first = step;
  states.restored = states.first != kNone && with_state <= states.first;
  // What the last step leaves, a step behind it would find.
  if (!states.left.empty()) states.found.push_back(states.left.back());
  return states;
}

StepVotes votes_for(const std::vector<const ProcessLog*>& processes, const StepStates& states,
                    const std::vector<const ProcessLog*>& others, const StepStates& other_states) {
  constexpr uint32_t kRecurs = kNone - 1;
  std::unordered_map<uint64_t, uint32_t> steps;  // of the other run, by value; kNone: none yet
  auto key = [](const Slot& slot, const StateNames& names, int32_t rank) {
    return mix(names.value(slot), uint64_t(rank));
  };
  visit_states(processes,
               [&](uint32_t step, const Slot& slot, const StateNames& names, int32_t rank) {
                 if (step == states.first && slot.kind == SlotKind::in)
                   steps.emplace(key(slot, names, rank), kNone);
               });
  const uint32_t behind = uint32_t(other_states.left.size());
  visit_states(others, [&](uint32_t step, const Slot& slot, const StateNames& names, int32_t rank) {
    if (slot.kind == SlotKind::out && step + 1 == behind)
      step = behind;
    else if (slot.kind != SlotKind::in)
      return;
    auto at = steps.find(key(slot, names, rank));
    if (at != steps.end()) at->second = at->second == kNone || at->second == step ? step : kRecurs;
  });
  std::vector<uint32_t> counts(behind + 1);
  for (const auto& [value, step] : steps)
    if (step < kRecurs) ++counts[step];
  StepVotes votes;
  if (other_states.first != kNone) votes.for_first = counts[other_states.first];
  const auto most = std::max_element(counts.begin(), counts.end());
  votes.most = *most;
  votes.step = uint32_t(most - counts.begin());
  return votes;
}

}  // namespace opguard
