// record/step_digest.h: a digest of each training step of a log, while the log is written.
//
//   step 7    matmul, occurrence 70, values 9f31 and 5d02     two sums of 64 bits, one a step
//             softmax, occurrence 70, value 77ab
//   the same in another order, by other threads, at other addresses     the same sums
//
// Of two logs whose steps have one digest, an aligner pairs every event with an equal one. So a
// step that has it need not be read (align/pair/equal_start.h).
// Counterexample: `out = torch.empty(4)`. What is there is whatever the memory held: its value is
// left out here, wherever it is read, as compare_events() leaves it out.
//
// The states of random generators have digests of their own. A program that never seeds numpy
// begins each run with another state of it, and that alone makes no run another one:
//
//   step     numpy.random's state     in run a   in run b
//   0        as the process began      77ab       5d02      unmoved: counts as equal
//   1        nobody drew from it       77ab       5d02
//   2        a shuffle drew from it    9f31       0c4e      moved: the steps differ
//
// What takes part of an event: boundary, kind, phase, flags, node, occurrence, micro-batch, group,
// sequence, the texts of arguments and results. Of each slot: kind, place, name, flags, type, shape
// and value. What does not: times, threads, streams, addresses, memory blocks, versions, devices.
//
// A step's events are kept apart as well, until it is known how finely they are to be told
// (step_groups.h).
//
// The cost: six multiplications a slot on the log's own thread, 8 bytes a string and a shape.
#pragma once

#include <compare>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "record/batch.h"
#include "record/event.h"
#include "record/step_groups.h"

namespace opguard {

// Sums modulo 2^64 of two mixes: equal for equal sets of events, else by a chance of some 2^-64.
// That is what the hash of a name, and that of a slot's place, can tell.
struct StepDigest {
  uint64_t a = 0, b = 0;
  auto operator<=>(const StepDigest&) const = default;
};

// The records of generators' states in a step. `exact` is a digest of all of them, `moved` of those
// that are not what they were at the log's first record.
struct GeneratorDigest {
  uint64_t moved = 0, exact = 0;
  uint64_t events = 0, unmoved = 0;  // records; those with a state that never moved before
  bool operator==(const GeneratorDigest&) const = default;
};

// The events of a log between two changes of its step.
struct DigestedStep {
  uint32_t step = 0;
  uint64_t events = 0, records = 0;
  StepDigest digest;  // of all events but those of generators
  GeneratorDigest generators;
  // Of each event of `digest`, in the order in which they ended: its share of `a`. None of a step
  // of more than a million.
  std::vector<StepGroup> groups;
  bool operator==(const DigestedStep&) const = default;
};

class StepDigester {
 public:
  // The strings and shapes of a batch, before its events.
  void add_texts(const Batch& batch);
  // The next event as it comes into the log. One that began in an earlier step counts where it
  // ended.
  void add(const Event& event, const Slot* slots);

  // Steps that are over, each once, in order.
  std::vector<DigestedStep> take_over() { return std::exchange(over_, {}); }
  // No further add(): the last one is over too.
  void finish();

 private:
  void digest_slot(const Slot& slot, uint64_t& a, uint64_t& b);
  void add_generators(const Event& event, const Slot* slots, StepDigest exact);
  bool is_moved(const Slot& slot);
  bool is_garbage(const Slot& slot) const;
  void note_garbage(const Slot& slot);
  uint64_t text(uint32_t string) const;

  std::vector<uint64_t> strings_, metas_;       // a hash of each
  std::unordered_set<uint32_t> of_generators_;  // strings: boundaries of their states
  // By generator: its first state, until it had another one.
  struct GeneratorState {
    Fingerprint first;
    bool moved = false;
  };
  std::unordered_map<uint32_t, GeneratorState> generators_;
  // Blocks that torch.empty left, with the elements that it left there.
  std::unordered_map<uint32_t, uint64_t> garbage_;
  bool began_ = false;
  DigestedStep now_;
  SiteModules modules_;
  std::vector<DigestedStep> over_;
};

}  // namespace opguard
