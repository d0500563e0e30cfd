// session/replay.h: a stretch of a job made again elsewhere, and held against its log: `opguard
// replay`.
//
//   opguard replay logs/job --first-step 1200 -- torchrun ... train.py --resume step1200.pt
//
//   1  the command runs here, from the job's checkpoint, recorded as the log was: mode and steps
//   2  each rank's values are compared with its own of the log (align/check/replay.h)
//   3  the rank that computed otherwise is named, with its host
//
// A silent fault of one device does not come again on another. Counterexample: every rank differs
// from the first step on. Then it is the machine, a version or the checkpoint, and that is said.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace opguard {

struct ReplayOptions {
  std::string log;          // of the job
  std::string replayed;     // a log of the replay, made elsewhere; "": the command is run
  uint32_t first_step = 0;  // of the command
  std::string keep;         // the replay's log is kept in this new folder
  std::string json;
  std::vector<std::string> command;
};

// The exit code: 0 every rank computed the same, 1 one did not, 2 nothing could be compared.
int replay(const ReplayOptions& opt);

}  // namespace opguard
