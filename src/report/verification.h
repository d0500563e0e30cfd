// report/verification.h: what `opguard-instrument --verify` found, and its text for people and
// programs (docs/formats/json.md, "Verification").
//
//   bare                 loss 9c1f.., 3 graphs     what all is held against
//   instrumented         loss 4e02..               Change::values
//   bare again           loss 9c1f..               noisy() is false: the probes did it
//   instrumented again   loss 4e02..               unsteady() is false: a search can find which
//   search               wrap 17                   Culprit {found, alone, only}
//
// Counterexample: two bare runs that differ. No probe is blamed then, whatever the instrumented run
// did.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "align/values/same_values.h"
#include "patcher/patch.h"
#include "support/source.h"

namespace opguard {

// What torch.compile did, over all processes of a run; nothing where the log does not say.
// Compared only where both logs say it: nothing is no zero.
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
  size_t boundaries = 0;  // probes put in
  size_t runs = 0;        // of the program, the preflight's not counted
  Judgement instrumented;
  CompileCounts bare;
  LogLoss log;                                  // of the instrumented run
  std::optional<Judgement> repeated;            // a second bare run, where one was made
  std::optional<Judgement> instrumented_again;  // a second run with every probe, likewise
  std::optional<Culprit> culprit;

  // The program differs from itself: no probe is blamed.
  bool noisy() const { return repeated && repeated->change != Change::none; }
  // With every probe it does now this, now that: what breaks at times breaks in no bisection.
  bool unsteady() const {
    return instrumented_again && instrumented_again->change != instrumented.change;
  }
};

// One sentence: what differs, or that nothing does.
std::string words(const Verification& found);
std::string words(const Judgement& judgement);
// "optimizer state".
const char* value_kind_name(ValueKind kind);
// What one run has of it: "float32[2, 8] 00ab..:77cd..".
std::string side_text(const ValueDifference& difference, const ValueSide& side);

// "different", as JSON has it.
const char* verdict_name(Verification::Verdict verdict);
// The first line of a site's text.
std::string site_text(const SourceSet& sources, const Site& site);

// wraps: those that were verified, in order of execution.
std::string verification_text(const Verification& found, const SourceSet& sources,
                              const std::vector<Wrap>& wraps);
std::string verification_json(const Verification& found, const SourceSet& sources,
                              const std::vector<Wrap>& wraps);

}  // namespace opguard
