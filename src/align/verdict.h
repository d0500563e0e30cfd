// align/verdict.h: what an alignment means: identical, or the pivot and why.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "align/alignment.h"
#include "record/record.h"

namespace opguard {

enum class Outcome : uint8_t { identical, diverged, inconclusive };
enum class PivotKind : uint8_t { value, scalar, structure, input, race };

struct EventRef {
  int32_t process = -1;  // index in Run::processes; -1: that side has none
  uint32_t event = kNone;
  bool operator==(const EventRef&) const = default;
};

// An operator at which the runs part. At least one side is set.
struct Pivot {
  PivotKind kind = PivotKind::value;
  EventRef a, b;
  uint32_t slot = kNone;  // index in ProcessLog::slots of side b's (else a's) first differing slot
  std::string why;        // one sentence
  bool operator==(const Pivot&) const = default;
};

// A generator of random numbers whose state is not the same in both runs.
struct StateDifference {
  std::string generator;    // "torch.cpu", "python"
  EventRef a, b;            // the first pair of records that differs
  uint64_t records = 0;     // pairs that hold it
  uint64_t differing = 0;   // of these
  bool from_start = false;  // the first of them differs
  bool to_end = false;      // the last of them differs
  bool drawn = false;       // the state moves: somebody draws from it, or seeds it again
  bool operator==(const StateDifference&) const = default;
};

struct Verdict {
  Outcome outcome = Outcome::inconclusive;
  std::string why;                // one sentence
  std::vector<Pivot> candidates;  // [0] is the pivot; at most 6
  uint64_t harmless = 0;          // differing events before the pivot that reach no model value
  std::vector<StateDifference> states;
  std::vector<std::string> notes;  // settings that differ, lost records, what could not be compared
};

// Judgement by value flow: docs/judgement.md.
Verdict judge(const Run& a, const Run& b, const Alignment& alignment);

}  // namespace opguard
