// align/value_flow.h: who made which value first, and where a value only one run holds comes from.
//
// A fingerprint is the name of a value. A value of one run is *novel* if the other run never holds
// it. Walking back from a differing model value through novel values ends at *origins*: operators
// all of whose inputs both runs know. docs/judgement.md gives the rules and their reasons.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "align/broadcast.h"
#include "align/collectives.h"
#include "align/verdict.h"
#include "record/record.h"

namespace opguard {

// The name of a value: its bytes in logical order and its dtype, whatever its shape.
struct ValueKey {
  uint64_t lo = 0, hi = 0;
  auto operator<=>(const ValueKey&) const = default;
};

struct ValueKeyHash {
  size_t operator()(const ValueKey& key) const { return key.lo ^ (key.hi * 0x9e3779b97f4a7c15ull); }
};

ValueKey value_key(const ProcessLog& log, const Slot& slot);
ValueKey value_key(uint64_t flat, uint64_t elements, std::string_view dtype);

// False for what names no value: unreadable or uninitialised memory.
bool has_value(const Slot& slot);

struct SlotRef {
  EventRef event;
  uint64_t slot = 0;  // index in ProcessLog::slots
  bool operator==(const SlotRef&) const = default;
};

// Everything a run held, and who made it.
class ValueIndex {
 public:
  explicit ValueIndex(const Run& run) : run_(run) {}

  const Run& run() const { return run_; }
  bool holds(const ValueKey& key) const;
  bool holds_mask(uint64_t pattern) const;

  // The first event that made the value (returned it or wrote it) before `consumer` (`inclusive`:
  // or by it): in its own process, else in the process that made it first by the clock. {} if none
  // did.
  SlotRef producer(const ValueKey& key, const EventRef& consumer, bool inclusive) const;

  // Who left the bytes a slot lies on, before `consumer` in its process: the last event for each
  // part of that memory.
  struct Parts {
    std::vector<SlotRef> left;
    bool complete = false;  // every byte is accounted for
  };
  Parts parts(const EventRef& consumer, const Slot& slot) const;

  const Collectives& collectives() const;
  // Its values that those of `asking`, always the same run, repeat or are repeated by.
  const Broadcasts& broadcasts(const Run& asking) const;

  Event event(const EventRef& ref) const { return run_.processes[ref.process].events[ref.event]; }
  const ProcessLog& log(const EventRef& ref) const { return run_.processes[ref.process]; }
  Slot slot(const SlotRef& ref) const { return log(ref.event).slots[ref.slot]; }
  std::string_view boundary(const EventRef& ref) const {
    return log(ref).text(event(ref).boundary);
  }

 private:
  struct Block {  // memory left by an event, in order of completion
    uint64_t begin, end;
    uint32_t storage;  // 0: not known
    uint32_t event;
    uint64_t slot;
  };
  // Of so many events, the part-th such stretch; made when first asked for, since who looks back
  // rarely looks far.
  static constexpr uint32_t kBlocksOf = 1 << 12;
  const std::vector<Block>& blocks(int32_t process, uint32_t part) const;

  // Keys are folded into 64 bits: two of a run's values meet by chance as rarely as two tensors'
  // flat hashes do.
  struct Maker {
    uint64_t key;
    int32_t process;
    uint32_t event, slot;  // `slot`: among the event's
  };
  struct Values {
    std::vector<uint64_t> held;   // sorted
    std::vector<Maker> makers;    // the first of each process; by key, then process
    std::vector<uint64_t> masks;  // sorted
  };
  // Made when first asked for: runs whose model values agree need none of it.
  const Values& values() const;
  SlotRef made_by(const Maker& maker) const;

  const Run& run_;
  mutable std::optional<Values> values_;
  mutable std::optional<Collectives> collectives_;
  mutable std::optional<Broadcasts> broadcasts_;
  mutable std::unordered_map<uint64_t, std::vector<Block>> blocks_;  // by process and part
};

// Where a novel value comes from.
struct Origin {
  EventRef event;
  uint64_t slot = 0;  // the novel value itself, or the input nobody made
  bool hole = false;  // an input that no recorded event made
  bool movement =
      false;  // only bytes are moved: view, cat, copy_, a collective, known parts in a buffer
  bool operator==(const Origin&) const = default;
};

// A novel value that other ranks brought: all the rank gave to the collective itself is known.
struct Arrival {
  EventRef event;               // the collective where it was done; a step whose gradients were
                                // averaged below Python
  uint64_t slot = 0;            // what arrived
  std::vector<EventRef> peers;  // events of other ranks that gave novel values to it
};

struct FlowOptions {
  // The other run has no such event. Without it, no event is taken for one-sided.
  std::function<bool(const EventRef&)> one_sided;
  // Novel results of these operators on known inputs count as known.
  std::function<bool(const EventRef&)> discounted;
};

// One run's values against the other's.
class Flow {
 public:
  Flow(const ValueIndex& mine, const ValueIndex& other, FlowOptions options = {});

  bool novel(const EventRef& event, const Slot& slot) const;

  // Origins of the values at `sinks`, earliest first, and how many events the walk went through.
  std::vector<Origin> origins(const std::vector<SlotRef>& sinks);
  const std::unordered_set<uint64_t>& visited() const { return visited_; }
  // Of the walk: what other ranks brought, in no order.
  const std::vector<Arrival>& arrivals() const { return arrivals_; }
  static uint64_t id(const EventRef& ref) { return uint64_t(ref.process) << 32 | ref.event; }

 private:
  struct Work {
    SlotRef wanted;     // a novel value ...
    EventRef consumer;  // ... and who needs it
  };
  void trace(const Work& work, std::vector<Work>& stack, std::vector<Origin>& origins);
  void expand(const SlotRef& made, std::vector<Work>& stack, std::vector<Origin>& origins);
  bool written_over(const EventRef& ref, const Slot& slot) const;
  bool push_novel_inputs(const EventRef& ref, const EventRef& consumer, bool inputs_only,
                         std::vector<Work>& stack) const;
  bool push_children(const EventRef& ref, std::vector<Work>& stack) const;
  bool push_forward(const EventRef& ref, std::vector<Work>& stack) const;
  std::vector<EventRef> push_peers(const EventRef& ref, std::vector<Work>& stack) const;
  bool push_scalars(const EventRef& ref, std::vector<Work>& stack) const;
  bool push_summed(const Work& work, std::vector<Work>& stack) const;
  bool push_reduced(const Work& work, std::vector<Work>& stack);

  bool trace_parts(const Work& work, std::vector<Work>& stack, std::vector<Origin>& origins);
  bool trace_overwrite(const Slot& wanted, const ValueIndex::Parts& parts,
                       std::vector<Origin>& origins);
  bool relaid_parts(const Slot& wanted, const ValueIndex::Parts& parts) const;
  bool repeats_known(const EventRef& event, const Slot& slot) const;
  std::string_view callee(const EventRef& ref) const;  // as in source; "" if its place is unknown
  bool any_novel(const ValueIndex::Parts& parts) const;
  bool made_of_known(const SlotRef& made) const;
  bool views_larger_input(const SlotRef& made) const;
  bool reduced_below(const Work& work) const;

  const ValueIndex& mine_;
  const ValueIndex& other_;
  FlowOptions options_;
  bool discounting_;
  std::unordered_set<ValueKey, ValueKeyHash>
      relaid_;  // made by discounted operators of known values
  std::unordered_set<uint64_t> visited_;
  std::vector<Arrival> arrivals_;
};

// Whether an operator, by its name in source, only moves bytes.
bool moves_bytes(std::string_view callee);

}  // namespace opguard
