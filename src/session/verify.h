// session/verify.h: a program bare and instrumented: the same losses, gradients and parameters, bit
// for bit, and the same compiled graphs?
//
//   bare            loss 2.31 1.97 1.64      3 graphs
//   instrumented    loss 2.31 1.97 1.63      3 graphs       which probe? by bisection
//
// Counterexample: two bare runs that differ. Then the program is not deterministic, and no probe is
// blamed. Nor is one where the instrumented run does something else each time.
//
// The cost: two runs where all is well. Else these two once more, and at most `runs` for the
// search.
#pragma once

#include <string>
#include <vector>

#include "llvm/Support/Error.h"
#include "report/verification.h"

namespace opguard {

struct VerifyOptions {
  std::vector<std::string> command;
  std::string tree;  // absolute; the command runs in it
  std::string work;  // folder of ours for logs, outputs and instrumented texts
  uint64_t seed = 0;
  uint64_t runs = 20;  // to spend on the search for the probe that changes something
};

// wraps: in order of execution. Error: the program does not start, or fails without any probe.
llvm::Expected<Verification> verify(const VerifyOptions& options, const SourceSet& sources,
                                    std::vector<Wrap> wraps);

}  // namespace opguard
