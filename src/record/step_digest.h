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
// What takes part of an event: boundary, kind, phase, flags, node, occurrence, micro-batch, group,
// sequence, the texts of arguments and results. Of each slot: kind, place, name, flags, type, shape
// and value. What does not: times, threads, streams, addresses, memory blocks, versions, devices.
//
// The cost: six multiplications a slot on the log's own thread, 8 bytes a string and a shape.
#pragma once

#include <compare>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "record/batch.h"
#include "record/event.h"

namespace opguard {

// Sums modulo 2^64 of two mixes: equal for equal sets of events, else by a chance of some 2^-64.
// That is what the hash of a name, and that of a slot's place, can tell.
struct StepDigest {
  uint64_t a = 0, b = 0;
  auto operator<=>(const StepDigest&) const = default;
};

// The events of a log between two changes of its step.
struct DigestedStep {
  uint32_t step = 0;
  uint64_t events = 0, records = 0;
  uint64_t lost = 0;  // records that are missing among them
  StepDigest digest;
  bool operator==(const DigestedStep&) const = default;
};

class StepDigester {
 public:
  // The strings and shapes of a batch, before its events; its losses.
  void add_texts(const Batch& batch);
  // The next event as it comes into the log. One that began in an earlier step counts where it
  // ended.
  void add(const Event& event, const Slot* slots);
  void lose(uint64_t records) { now_.lost += records; }

  // Steps that are over, each once, in order.
  std::vector<DigestedStep> take_over() { return std::exchange(over_, {}); }
  // No further add(): the last one is over too.
  void finish();

 private:
  void digest_slot(const Slot& slot, uint64_t& a, uint64_t& b);
  bool is_garbage(const Slot& slot) const;
  void note_garbage(const Slot& slot);
  uint64_t text(uint32_t string) const;

  std::vector<uint64_t> strings_, metas_;  // a hash of each
  // Blocks that torch.empty left, with the elements that it left there.
  std::unordered_map<uint32_t, uint64_t> garbage_;
  bool began_ = false;
  DigestedStep now_;
  std::vector<DigestedStep> over_;
};

}  // namespace opguard
