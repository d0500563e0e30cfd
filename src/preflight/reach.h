// preflight/reach.h: how the tool gets into the Pythons that a command starts.
//
//   LD_PRELOAD=.../opguard_keep.so OPGUARD_BOOT=.../boot    torchrun train.py
//   torchrun                 a Python: sitecustomize of the boot folder is imported, opguard is in
//     train.py, 8 times      so it is in each of these, also where the program changes PYTHONPATH
//
// Counterexample: `python -S train.py`. It imports no sitecustomize, so check_reachable() refuses
// it. What sudo, ssh or a container starts has an environment of its own: unreached() says so.
#pragma once

#include <string>
#include <vector>

#include "llvm/Support/Error.h"
#include "support/launch.h"

namespace opguard {

// Variables by which every Python process below loads our package. opguard_keep.so is preloaded and
// puts the boot folder into each Python's PYTHONPATH (keep/start.cc). Where it cannot be, the
// variable PYTHONPATH names it, and a program that sets its own is not reached.
Variables python_environment();

// The same for a run of our own, which writes no byte code into the user's tree.
Variables own_run_environment();

// Adds a library to the LD_PRELOAD of such variables, behind what is there. False, and nothing is
// done, where the loader could not read its name.
bool add_preload(const std::string& library, Variables& environment);

// Error if the command is a Python with a flag that forbids it: -I, -E, -S.
llvm::Error check_reachable(const std::vector<std::string>& command);

// Why nothing was recorded into this folder, as far as is known: a part of a sentence.
std::string unreached(const std::string& folder);

}  // namespace opguard
