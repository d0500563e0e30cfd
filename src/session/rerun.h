// session/rerun.h: a side's program run once more, and the tensors that such a run has written.
//
//   run_again(b, {"proof_2", {{"OPGUARD_CAPTURE", "softmax:q7k2@3\n"}}, /*until=*/4})
//   captures.read(log, again)       tensors-rank0-4711-softmax:q7k2@3-forward-op.safetensors
//   captures.of(run_b, event)       the same file, by the event of the first run
//
// A re-run has other processes, with other numbers. So a file belongs to a rank and to the ordinal
// of the process in it, never to a pid. Counterexample: two files of one such name. Which is meant
// cannot be told, and there is none.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "align/judge/verdict.h"
#include "record/record.h"
#include "session/side.h"

namespace opguard {

inline const std::string kProof = "proof: ";  // begins what is said of a proof's runs

// Lines of selections by the variable that takes them (OPGUARD_CAPTURE, ...).
using Selections = std::map<std::string, std::string>;

struct RerunOptions {
  std::string folder;  // below the side's work folder
  Selections selections;
  uint32_t until = kNone;  // the last step; kNone: to the program's own end
  uint64_t timeout_s = 0;  // 0: none
};

// A run that goes wrong need not end: five times as long as the run itself took, and a minute.
uint64_t patience_s(const Run& run);

// The folder of its logs. Error: the program failed, or did not end in time.
llvm::Expected<std::string> run_again(const GuardedProgram& program, const RerunOptions& options);

// The files of one run's captured tensors, by the event they are of.
class Captures {
 public:
  // run: the re-run that wrote them.
  void read(const std::string& dir, const Run& run);
  // Of an event of another run of the same program. "" if there is none, or more than one.
  std::string of(const Run& run, const EventRef& ref) const;

 private:
  using Key = std::tuple<std::string, std::string, std::string, std::string, std::string,
                         std::string, std::string>;
  std::map<Key, std::string> paths_;
};

}  // namespace opguard
