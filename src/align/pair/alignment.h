// align/pair/alignment.h: which events of two runs are the same boundary.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "align/pair/steps.h"
#include "record/record.h"

namespace opguard {

enum class Equality : uint8_t {
  equal,    // same inputs, scalars and outputs
  outputs,  // outputs (or written inputs) differ, tensor inputs and scalars equal: an origin
  scalars,  // tensor inputs equal, scalars differ
  inputs,   // tensor inputs differ
  shape,    // dtype, shape or number of slots differ
  hidden,   // what differs is a rule's business, or read from what is: hidden.h
};

// Two events of one boundary.
struct Pair {
  uint32_t process;  // index in Alignment::processes
  uint32_t a, b;     // index in each side's ProcessLog::events
  float score;       // 0..1, closeness
  Equality equality;
  bool moved = false;  // another place in the order of b: flow_pairs.h
};

// Two processes compared: same rank, same position among that rank's processes. -1: one side only.
struct ProcessPair {
  int32_t a, b;                          // index in Run::processes
  std::vector<Pair> pairs;               // by a; in one thread, b of those not moved increases
  std::vector<uint32_t> only_a, only_b;  // events without a partner
  StepPairs steps = {};                  // which of their steps are the same
  // Events of steps that the other run does not make: neither pairs nor without a partner.
  std::vector<uint32_t> besides_a = {}, besides_b = {};
};

struct Alignment {
  std::vector<ProcessPair> processes;
  uint64_t certified_prefix = 0;  // equal pairs, over all processes in step order, before the first
                                  // unequal one that is not passed_over; 0 where either run lost
                                  // records
  uint64_t pairs = 0, unequal = 0;
  // Neither equal nor counted as unequal: pairs all of whose differences rules hide, and operators
  // that differ only by what they read of these.
  uint64_t hidden = 0, following = 0;
};

const char* equality_name(Equality equality);

// By cause: inputs' shapes, inputs, scalars, outputs' shapes, outputs. Unreadable slots and what
// torch.empty returned are left out.
Equality compare_events(const ProcessLog& a, const Event& ea, const ProcessLog& b, const Event& eb);

// Every pair in the order of the certificate: by step, then process, then a.
std::vector<const Pair*> pairs_in_order(const Run& a, const Alignment& alignment);

// Pairs that do not end the certified prefix, and are not counted in it. They are what rules hide,
// and states of random number generators: an operator that draws from one shows the difference
// itself.
bool passed_over(const Run& a, const Alignment& alignment, const Pair& pair);

// Alignment::certified_prefix, of the pairs as they are now.
uint64_t certified_prefix(const Run& a, const Run& b, const Alignment& alignment);

// The last pair of the certified prefix; nullptr: nothing is certified.
const Pair* last_certified(const Run& a, const Alignment& alignment);

// Anchors (unique equal events), a banded DP in the windows between them, then data flow for what
// moved or was taken for its neighbour.
Alignment align_runs(const Run& a, const Run& b);
// The same where it is known which steps are the same: those of `like`, by rank and place. For a
// run made again.
Alignment align_runs(const Run& a, const Run& b, const Alignment& like);

std::string dump(const Alignment& alignment, const Run& a, const Run& b);

}  // namespace opguard
