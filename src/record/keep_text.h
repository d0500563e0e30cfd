// record/keep_text.h: how much of a log stays, as `opguard run` says it: --keep and --spool.
//
//   20GB       of each process the last 20 GB of events
//   6h         the events of the last six hours
//   20GB,6h    what both keep
//
// Sizes are MB, GB, TB (powers of 1000) and MiB, GiB, TiB; times are s, m, h and d.
// Counterexample: `500` is refused: of what?
//
// The runtime reads it too: no LLVM here. The cost: nothing a step.
#pragma once

#include <string>
#include <string_view>

#include "record/log_files.h"

namespace opguard {

// With segments so large that an eighth of what is kept goes at a time, and at most 256 MiB. False:
// `error` says what is wrong, in one sentence.
bool parse_keep(std::string_view text, SegmentLimits& limits, std::string& error);

// How much of it may wait to be uploaded, as `opguard run --spool` says it: a size. False: as
// above.
bool parse_spool(std::string_view text, SegmentLimits& limits, std::string& error);

}  // namespace opguard
