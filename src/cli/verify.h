// cli/verify.h: a program bare and instrumented: the same losses, gradients and parameters, bit for
// bit, and the same compiled graphs?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "align/values/same_values.h"
#include "llvm/Support/Error.h"
#include "patcher/patch.h"
#include "support/source.h"

namespace opguard {

struct VerifyOptions {
  std::vector<std::string> command;
  std::string tree;  // absolute; the command runs in it
  std::string work;  // folder of ours for logs, outputs and instrumented texts
  uint64_t seed = 0;
  uint64_t runs = 20;  // to spend on the search for the probe that changes something
};

// What torch.compile did, over all processes of a run; nothing where the log does not say.
struct CompileCounts {
  std::optional<uint64_t> graphs, graph_breaks, recompiles;
  bool operator==(const CompileCounts&) const = default;
};

// What a run's logs say about themselves.
struct LogLoss {
  uint64_t processes = 0, events = 0, records = 0;
  uint64_t lost = 0;                  // records
  uint64_t faults = 0;                // of the runtime
  uint64_t unclosed = 0;              // logs cut short
  std::vector<std::string> unprobed;  // what compiled code left without a probe, as the log says it
};

enum class Change : uint8_t {
  none,
  fails,    // the bare program ends well, the instrumented one does not
  values,   // a loss, gradient or parameter
  compile,  // graphs, graph breaks or recompilations
};

// A run against the first bare run.
struct Judgement {
  Change change = Change::none;
  ValueComparison values;
  CompileCounts counts;
  std::string failure;  // how it ended and its last words; "" if it ended well
};

// The probe that brings the change about.
struct Culprit {
  size_t wrap = 0;     // index in the wraps; meaningful if found
  bool found = false;  // false: the runs were spent; it is in [first, last]
  size_t first = 0, last = 0;
  bool alone = false;  // its probe by itself changes the program
  bool only = false;   // without its probe, nothing changes
};

struct Verification {
  enum class Verdict : uint8_t { equal, different, inconclusive } verdict = Verdict::inconclusive;
  std::string why;  // one sentence
  size_t boundaries = 0,
         runs = 0;  // probes put in; runs of the program, the preflight's not counted
  Judgement instrumented;
  CompileCounts bare;
  LogLoss log;                           // of the instrumented run
  std::optional<ValueDifference> noise;  // between two bare runs
  std::optional<Culprit> culprit;
};

// wraps: in order of execution. Error: the program does not start, or fails without any probe.
llvm::Expected<Verification> verify(const VerifyOptions& options, const SourceSet& sources,
                                    std::vector<Wrap> wraps);

// For people, and for programs (docs/json.md, "Verification").
std::string verification_text(const Verification& found, const SourceSet& sources,
                              const std::vector<Wrap>& wraps);
std::string verification_json(const Verification& found, const SourceSet& sources,
                              const std::vector<Wrap>& wraps);

}  // namespace opguard
