// align/values/unseen_changes.h: memory of one process whose bytes changed between the operator
// that left them and one that read them, behind both.
//
// All reads and results are put in order of time over all threads. A *life* of a view begins when
// an operator leaves a value there, and ends when one leaves another, or counts a new version:
//
//   event 3   h = norm(x)      block 7, version 0: P      the life begins
//   event 5   w = h * 2        reads P                    the value is in use
//             (another thread fills the buffer)
//   event 9   y = h + 1        reads Q                    changed: left by 3, last seen by 5
//
// What somebody may write is no change: counted or recorded writings, parameters and their like.
// docs/design/judgement.md, "Overwritten memory", has the rules. Two passes over the log; memory is
// bounded by what was alive at one time.
#pragma once

#include <cstdint>
#include <vector>

#include "record/record.h"

namespace opguard {

// One slot, when it was read or left.
struct Sighting {
  uint64_t time_ns = 0;
  uint32_t event = 0;
  uint32_t slot = 0;  // index in ProcessLog::slots
};

struct UnseenChange {
  Sighting left, seen, read;  // by its operator; last as it was left; with other bytes
  // That the value was not meant to be filled later. It was an operator's own result, already in
  // use, handed out with new contents. Or the same step of the program finds it intact elsewhere.
  bool proven = false;
};

struct UnseenChanges {
  uint64_t reads = 0;                 // inputs whose memory block is known
  uint64_t compared = 0;              // of them, those held against what an operator left there
  std::vector<UnseenChange> changes;  // in order of time
};

UnseenChanges unseen_changes(const ProcessLog& log);

}  // namespace opguard
