// session/prove_replay.h: a refutation of `opguard prove` as a program that shows it running.
//
//   DIR/README.md    what it shows, and the commands
//   DIR/replay.py    runs the model on one process and the plan on its ranks
//   DIR/case.json    the input, and what was predicted
//   DIR/plan/        the plan, and the modules that it took from its folder
//   DIR/lib/         what replay.py takes from opguard: how a rank's part is cut
//
// The folder can be sent on: it needs torch, and nothing of opguard's.
#pragma once

#include <string>

#include "llvm/Support/Error.h"
#include "prove/check.h"

namespace opguard {

// Whether a new folder can be written there: it is not there, or empty. Asked before anything runs.
llvm::Error can_replay_into(const std::string& folder);

// "" where there is something to replay; else why not.
std::string nothing_to_replay(const proving::Result& result);

llvm::Error write_replay(const std::string& folder, const proving::Captured& captured,
                         const proving::Result& result);

}  // namespace opguard
