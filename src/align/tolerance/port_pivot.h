// align/tolerance/port_pivot.h: which operator of a port is named, where no operator has the
// reference's name.
//
//   up(x)        equal within rounding
//   gelu(..)     made of that alone, and not the reference's: this one
//   down(..)     made of what is another already
//
// The last operator in the region all of whose tensors are known, or constants of the port's own.
// Scores to which both runs add a mask count as known behind it too: one may add -1e9, one -3e38.
// The reference's counterpart is what reads the same value there, and is not the candidate's.
//
// Counterexample: a rotation in another form between equal values, as of neighbours for halves. No
// value behind it is missing, so nobody walks there.
//
// The cost: one pass over what was compared, and the events of the region.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "align/tolerance/comparison.h"
#include "align/tolerance/flow_back.h"
#include "align/values/value_index.h"

namespace opguard {

struct PortPlace {
  EventRef a, b;                 // -1: none
  bool reads_parameter = false;  // b does, one that is the reference's
  // One of the two does nothing but multiply: b has so many times what a makes there. 0: no such.
  double factor = 0;
};

class PortPivot {
 public:
  PortPivot(const Run& reference, const Run& candidate, const Comparison& comparison);

  PortPlace of(const ToleranceOrigin& origin) const;

 private:
  // What reads one value, and makes another of it.
  struct Reading {
    EventRef event;       // -1: none
    double multiple = 0;  // of the value, where nothing else is made of it. 0: none
  };
  // of_graph: only what autograd goes through.
  Reading reads_too(const ValueKey& key, uint32_t at_least, bool of_graph) const;
  bool multiplies(const std::vector<EventRef>& events, double factor) const;
  double multiple(const Run& run, const SlotRef& read, const EventRef& by) const;
  double multiple_of(const std::pair<const Run&, SlotRef>& value,
                     const std::pair<const Run&, EventRef>& by, double off) const;
  double results_multiple(const EventRef& a, const EventRef& b) const;
  // What a mask stands in is taken for known: it hides what it was made of in both runs.
  void know_hidden();
  // The result of an event that is so much larger than a value of its shape that it hides it. None:
  // the slot is of no process.
  SlotRef hiding(const Run& run, const SlotRef& value, const EventRef& by) const;
  bool is_multiple(const SlotRef& b, const SlotRef& a) const;
  // Before `reader`: what merged dimensions that were not exchanged back yet. None: process -1.
  EventRef merges_exchanged(const EventRef& reader) const;

  const Run& a_;
  const Run& b_;
  const Comparison& comparison_;
  std::unordered_set<ValueKey, ValueKeyHash> known_;       // of the candidate
  std::unordered_set<ValueKey, ValueKeyHash> parameters_;  // of these
  // Of the candidate's value: where the reference made it, and the candidate.
  std::unordered_map<ValueKey, std::pair<SlotRef, SlotRef>, ValueKeyHash> partners_;
  std::unordered_set<uint64_t> paired_;  // slots of the reference
  // Known with dimensions exchanged: how, as SketchSet::dim says it.
  std::unordered_map<ValueKey, uint8_t, ValueKeyHash> exchanged_;
  std::unordered_set<ValueKey, ValueKeyHash> hidden_;  // known behind a mask
};

}  // namespace opguard
