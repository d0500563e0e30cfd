// align/judge/value_flow.h: where a value only one run holds comes from.
//
// Walking back from a differing model value, through values that are not the other run's, ends at
// *origins*: operators all of whose inputs are. Which values are is told by novelty.h.
// docs/design/judgement.md gives the rules and their reasons.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <utility>
#include <vector>

#include "align/judge/heuristics.h"
#include "align/judge/novelty.h"
#include "align/values/value_index.h"

namespace opguard {

// Where a novel value comes from.
struct Origin {
  EventRef event;
  uint64_t slot = 0;     // the novel value itself, or the input nobody made
  bool hole = false;     // an input that no recorded event made
  bool choice = false;   // the input is a value that its maker left alike in both runs, but the
                         // other run reads another one here
  EventRef reader = {};  // the first event behind it that both runs have: what waits for the value
  Heuristics by = {};    // what the way to it was argued by
  bool operator==(const Origin&) const = default;
};

// An operator of one run alone that the walk came through, on its way from `reader`.
struct RegionStep {
  EventRef event, reader;
};

// A novel value that other ranks brought: all the rank gave to the collective itself is known.
struct Arrival {
  EventRef event;               // the collective where it was done; a step whose gradients were
                                // averaged below Python
  uint64_t slot = 0;            // what arrived
  std::vector<EventRef> peers;  // events of other ranks that gave novel values to it
};

// The walk back on one side, through what differs.
class Flow {
 public:
  Flow(const ValueIndex& mine, const ValueIndex& other, FlowOptions options = {})
      : mine_(mine), known_(mine, other, std::move(options)) {}

  bool novel(const EventRef& event, const Slot& slot) const { return known_.novel(event, slot); }
  bool differs(const SlotRef& ref) const { return known_.differs(ref); }

  // Origins of the values at `sinks`, earliest first, and how many events the walk went through.
  std::vector<Origin> origins(const std::vector<SlotRef>& sinks);
  const std::unordered_set<uint64_t>& visited() const { return visited_; }
  // Of the walk: what other ranks brought, in no order.
  const std::vector<Arrival>& arrivals() const { return arrivals_; }
  // Of the walk: operators of one run alone, and the readers (by id) of those that read a
  // difference which began before them.
  const std::vector<RegionStep>& steps() const { return steps_; }
  const std::unordered_set<uint64_t>& inherits() const { return inherits_; }
  static uint64_t id(const EventRef& ref) { return uint64_t(ref.process) << 32 | ref.event; }

 private:
  struct Work {
    SlotRef wanted;        // a value that differs ...
    EventRef consumer;     // ... who needs it ...
    EventRef reader = {};  // ... the last event before these that both runs have ...
    Heuristics by = {};    // ... and what the way to it was argued by
  };
  void trace(const Work& work, std::vector<Work>& stack, std::vector<Origin>& origins);
  void expand(const SlotRef& made, const EventRef& reader, std::vector<Work>& stack,
              std::vector<Origin>& origins);
  void follow(const SlotRef& made, const EventRef& reader, std::vector<Work>& stack,
              std::vector<Origin>& origins);
  void trace_from(const Work& work, std::vector<Work>& stack, std::vector<Origin>& origins);
  bool on(Heuristic heuristic) const { return known_.on(heuristic); }
  bool one_sided(const EventRef& ref) const {
    return known_.options().one_sided && known_.options().one_sided(ref);
  }
  bool besides(const EventRef& ref) const {
    return known_.options().besides && known_.options().besides(ref);
  }
  SlotRef read_unseen(const SlotRef& made) const;
  Heuristics taken_for_known(const EventRef& ref) const;
  bool chosen(const Work& work, const SlotRef& made) const;
  bool push_novel_inputs(const EventRef& ref, const EventRef& consumer, bool inputs_only,
                         std::vector<Work>& stack) const;
  bool push_children(const EventRef& ref, std::vector<Work>& stack) const;
  bool push_forward(const EventRef& ref, std::vector<Work>& stack) const;
  std::vector<EventRef> push_peers(const EventRef& ref, std::vector<Work>& stack) const;
  bool push_summed(const Work& work, std::vector<Work>& stack) const;
  bool push_reduced(const Work& work, std::vector<Work>& stack);

  bool trace_parts(const Work& work, std::vector<Work>& stack, std::vector<Origin>& origins);
  bool trace_overwrite(const Slot& wanted, const Memory::Parts& parts, const EventRef& reader,
                       std::vector<Origin>& origins);
  bool reduced_below(const Work& work) const;

  const ValueIndex& mine_;
  const Novelty known_;
  std::unordered_set<uint64_t> visited_;
  std::vector<Arrival> arrivals_;
  std::vector<RegionStep> steps_;
  std::unordered_set<uint64_t> inherits_;
  Heuristics by_;  // of the value that is being traced
};

}  // namespace opguard
