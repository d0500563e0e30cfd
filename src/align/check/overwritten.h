// align/check/overwritten.h: did a consumer read what the producer had left in its memory?
//
// One run is enough: same memory block, same view of it, same tensor version, other bytes, and no
// recorded operator wrote there. docs/design/judgement.md, "Overwritten memory".
#pragma once

#include <cstdint>
#include <vector>

#include "align/judge/verdict.h"

namespace opguard {

// What ran while memory changed, of one boundary in one thread.
struct RanMeanwhile {
  uint32_t thread = 0;
  EventRef first;      // its first event there
  uint64_t count = 0;  // how many
};

// Memory that changed between the event that left it and one that read it, behind both.
struct Overwrite {
  EventRef producer, consumer;  // of one process
  EventRef seen;                // the last event that found the producer's bytes, or the producer
  uint32_t left = kNone, read = kNone;  // indexes in ProcessLog::slots: of producer, of consumer
  uint64_t from_ns = 0, to_ns = 0;      // meanwhile: `seen` had them, the consumer began to read
  std::vector<RanMeanwhile> meanwhile;  // without producer and consumer; other threads first
  uint64_t events = 0;                  // meanwhile
  std::vector<EventRef> readers;        // later ones that read what the same writing left
  uint64_t times = 1;                   // overwritings between these two boundaries
};

struct OverwrittenCheck {
  uint64_t reads = 0;               // inputs whose memory block is known
  uint64_t compared = 0;            // of them, those held against what an operator left there
  std::vector<Overwrite> findings;  // one a pair of boundaries, in the order of the run
};

OverwrittenCheck check_overwritten(const Run& run);

// The sentence about the finding, of its one run.
Reasons explain(const Overwrite& finding);

}  // namespace opguard
