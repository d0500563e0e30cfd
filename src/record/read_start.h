// record/read_start.h: where to begin in a log of which a part is wanted, and where to stop.
//
//   rank0-...-4711.log     2 GB: texts, 30,000 chunks of events, some texts between them
//   its index of steps     event 99,000,000 is in the chunk at byte 1,980,112,044; texts lie in 12
//                          stretches before it
//
// So 12 stretches and the end are read, and no page of the rest is touched.
// Counterexample: a log without an index, or with one that is not whole. The reader goes from
// header to header then (ReadOptions::from_event).
// The cost: the logarithm of the steps, in blocks of 4 KiB, and 16 bytes a stretch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "record/step_index.h"

namespace opguard {

struct ReadStart {
  uint64_t at = 0;  // of a chunk of events that begins with the event, or before it; 0: not known
  std::vector<LogExtent> before;  // what must be read, in order
  uint64_t until = kToEnd;        // what lies here and behind holds no event that is wanted
  // What the log must be, so that this is of it.
  uint32_t salt = 0;
  uint64_t chunks = 0, chunk_chain = 0;
};

// event, until: the first event that is wanted, and the first behind those. bring: nullptr for a
// log of this machine.
ReadStart read_start(const std::string& log_path, uint64_t event, uint64_t until = kToEnd,
                     const Bring* bring = nullptr);

}  // namespace opguard
