// session/infer.h: `opguard infer`: logs of good runs -> a file of invariants.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace opguard {

struct InferOptions {
  std::vector<std::string> logs;      // folders, a run each
  std::vector<std::string> programs;  // "NAME=LOG": runs of one program are one vote
  std::string out, hypotheses, explain;
  uint32_t min_programs = 3;
  uint32_t threads = 0;  // 0: as many as there are
};

// The exit code: kYes; kCouldNotTell where a log cannot be read or nothing was found.
int infer(const InferOptions& opt);

}  // namespace opguard
