// session/digest.h: `opguard digest`: a run in one number, and where two runs part by their digests
// alone.
//
//   opguard digest run_a            7d09...c2: 8 logs, N steps, N records; then a line a rank
//   opguard digest run_a run_b      equal, or the first step that differs and in which part of it
//
// Two numbers can be compared by people who may not exchange their logs.
//
// Counterexample: a log that is not closed. Of its last steps nothing is told, so two runs are
// refused then; one run alone is told up to a step (--step).
//
// The cost: the indexes of steps and no log; of a step that differs, the parts in at most 4,096
// logs.
#pragma once

#include <cstdint>
#include <string>

#include "record/event.h"

namespace opguard {

struct DigestOptions {
  std::string dir_a, dir_b;              // the second: "" for none; both may be URLs
  uint32_t last_step = kNone;            // of one run: its steps up to this one alone
  std::string python = "python3", json;  // as align has them
};

// The exit code: of one run kYes; of two kNo where they differ.
int digest_logs(const DigestOptions& options);

}  // namespace opguard
