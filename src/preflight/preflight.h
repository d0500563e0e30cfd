// preflight/preflight.h: run the user's program under the tracer.
//
//   opguard preflight -o plan.json -- python train.py
//   work_dir    trace-4711-0.json of each process, output.txt, steps
//
// The program runs as it always does, in its tree; the tracer is in its environment alone.
// Counterexample: a program that starts Python with -I is refused before it runs, since nothing
// would be traced (reach.h).
//
// The cost: one whole run of the program, slowed down only until tracing ends (kUntilNothingNew).
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "llvm/Support/Error.h"
#include "plan/trace.h"
#include "support/launch.h"

namespace opguard {

// PreflightOptions::steps: tracing ends when no step has brought anything new for long. That is as
// many steps as it took to see all that was seen, and 16 at least. It shows in Trace::ended.
inline constexpr uint64_t kUntilNothingNew = UINT64_MAX;

struct PreflightOptions {
  std::vector<std::string> command;
  std::string tree;                   // absolute; the command runs in it
  std::vector<std::string> packages;  // --with
  std::set<std::string> left_out{};   // names below the tree of files that are no source
  // Stop tracing after so many optimizer steps; 0: never. The program runs on.
  uint64_t steps = kUntilNothingNew;
  std::string work_dir;  // where traces and output.txt go; made, must not hold traces
  bool quiet = false;    // do not show the program's output
  // Of devices: "auto", "cupti", "launches" (intercepted), "operators" (none):
  // docs/design/activities.md.
  std::string activities = "auto";
  std::string hook;         // hook map of texts to run in place of files; "": none
  Variables environment{};  // more of it
  bool to_its_end = false;  // a program that fails having left a trace is no error
};

struct Preflight {
  Trace trace;
  int exit_code = 0;
  std::string failure;  // with to_its_end: "exit code 1", "signal 9"; "" where it did not fail
  std::string output_tail;
  uint64_t steps = 0;  // of the whole run, also those that came when tracing had ended
};

// The program's stdout and stderr go to our stderr. Error if it cannot be started, fails (its exit
// code and last words are in the message), or leaves no trace.
llvm::Expected<Preflight> run_preflight(const PreflightOptions& options);

}  // namespace opguard
