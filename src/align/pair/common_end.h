// align/pair/common_end.h: a log that was cut short and a whole one, read to a common end.
//
//   a   w1 w2    w3 w4 w5 w6 ...   whole
//   b   w1 w2 x  w3 w4             cut short: its process was killed, or its disk was full
//
// Run a's w5 has no counterpart because b's log ends there. b may well have run it. So
// run a is read up to w4 as well; what is found is what differs before the end: x.
// Counterexample: a log with a gap in its middle goes on behind it, and keeps its length.
// It costs an alignment more, for pairs of runs of which one was cut short; nothing for others.
#pragma once

#include <array>
#include <cstdint>

#include "record/record.h"

namespace opguard {

// Leaves out of each process the events behind the last that its counterpart has too. That is done
// where that one's log was cut short or its run `failed`. Returns how many, by side.
std::array<uint64_t, 2> read_to_common_end(Run& a, Run& b, std::array<bool, 2> failed);

}  // namespace opguard
