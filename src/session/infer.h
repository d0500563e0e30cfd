// session/infer.h: `opguard infer`: logs of good runs -> a file of invariants.
//
//   opguard infer logs/a logs/b -o rules.json              two seeds of one program: its rules
//   opguard infer --program bert=l1 --program gpt=l2 ...   rules that at least --min-programs keep
//
// Runs of one program are one vote: ten seeds of one script say no more of other scripts than one
// does.
//
// Counterexample: a bad run among them. What it breaks is no rule any more. Of one program's runs,
// the one that alone breaks what all others keep is told.
//
// The cost: each log is read once, on `threads` cores; memory is by patterns of rows, not by rows.
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
