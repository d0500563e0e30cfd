// session/earlier_run.h: the logs that a run is held against while it goes on (`run --against`).
//
//   run_a/rank0-...log, .steps    each log has an index of its steps; recorded in mode full
//
// Counterexample: logs of an opguard that wrote no index of steps. They are compared behind the
// run, by `align`.
#pragma once

#include <llvm/Support/Error.h>

#include <string>

#include "record/bring.h"

namespace opguard {

struct EarlierRun {
  std::string mode;  // it was recorded in; "": its logs do not say
};

// An error says which log cannot be held against, and why. bring: nullptr, or of a folder that lies
// elsewhere: its indexes are brought whole.
llvm::Expected<EarlierRun> read_earlier_run(const std::string& dir, const Bring* bring = nullptr);

}  // namespace opguard
