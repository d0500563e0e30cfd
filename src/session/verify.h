// session/verify.h: a program bare and instrumented: the same losses, gradients and parameters, bit
// for bit, and the same compiled graphs?
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
